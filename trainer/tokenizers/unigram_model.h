#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// A unigram language model over pieces (Kudo, "Subword regularization", ACL 2018), and how its
/// text is made ready, as SentencePiece and Hugging Face's tokenizers library store it.
struct UnigramModel {
  struct Piece {
    std::string text;
    double score = 0;  // log probability
  };
  std::vector<Piece> pieces;  // by id
  std::int32_t unk_id = 0;
  std::string charsmap;           // a precompiled_charsmap; empty: the text stays as it is
  bool strip_right = false;       // white space at the end goes
  bool join_spaces = false;       // two or more spaces become one "▁"
  bool split_white_space = true;  // words end at any white space, else at the space alone
};

/// A `spiece.model` (SentencePiece's ModelProto). `file` stands for it in messages. Throws Error
/// naming the byte where it is damaged, or the field in which it is another kind of model than T5
/// has: BPE, byte fallback, no dummy prefix.
UnigramModel parse_sentencepiece(std::string_view bytes, const std::string& file);

/// The bytes of base64 text. Throws Error naming `what` for other characters or a wrong length.
std::string bytes_of_base64(std::string_view text, const std::string& what);

}  // namespace petlab::trainer
