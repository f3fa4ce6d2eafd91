#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// A unigram language model over pieces (Kudo, "Subword regularization", ACL 2018) and its text
/// normalisation, as stored by SentencePiece and Hugging Face's tokenizers library.
struct UnigramModel {
  struct Piece {
    std::string text;
    double score = 0;  // log probability
  };
  std::vector<Piece> pieces;  // by id
  std::int32_t unk_id = 0;
  std::string charsmap;           // a precompiled_charsmap; empty: no normalisation
  bool strip_right = false;       // remove white space at the end
  bool join_spaces = false;       // replace two or more spaces by a single "▁"
  bool split_white_space = true;  // words end at any white space; if false, only at spaces
};

/// Parses a `spiece.model` (SentencePiece's ModelProto). `file` names it in messages. Throws Error,
/// with the byte, for damaged data, or, with the field, for a kind of model other than T5's: BPE,
/// byte fallback, no dummy prefix.
UnigramModel parse_sentencepiece(std::string_view bytes, const std::string& file);

/// Decodes base64 text. Throws Error, beginning with `what`, for other characters or a wrong
/// length.
std::string bytes_of_base64(std::string_view text, const std::string& what);

}  // namespace petlab::trainer
