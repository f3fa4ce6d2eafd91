#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/tokenizers/charsmap.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/tokenizers/unigram_model.h"

namespace petlab::trainer {

/// The tokens around a text, and the added tokens found in it before it is split into words.
struct UnigramOptions {
  std::string eos_token = "</s>";
  std::string pad_token = "<pad>";
  std::vector<AddedToken> added = {};
};

/// T5's tokenizer: splits a word into its most probable sequence of pieces. `A </s>`, `A </s> B
/// </s>`.
class Unigram final : public Tokenizer {
 public:
  /// `file` names the model in messages. Throws Error for duplicate pieces, a missing eos_token or
  /// pad_token, or an added token whose id belongs to another piece.
  Unigram(UnigramModel model, const std::string& file, const UnigramOptions& options);

  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override;

 protected:
  void append(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::optional<std::string_view> vocabulary_entry(std::int32_t id) const override;
  std::string normalize(std::string_view text) const override { return charsmap_.normalize(text); }

 private:
  /// Appends the ids of a word, which begins with "▁" or precedes such a word.
  void append_word(std::string_view word, std::vector<std::int32_t>& ids) const;
  std::int32_t id_of(const std::string& token, const std::string& file) const;

  UnigramModel model_;
  Charsmap charsmap_;
  /// Pieces with their ids, sorted by bytes: pieces with a common prefix form a range.
  std::vector<std::pair<std::string_view, std::int32_t>> sorted_;
  double unknown_score_ = 0;
};

}  // namespace petlab::trainer
