#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace petlab::trainer {

/// Tokens and their ids. Ids may have gaps, but must be below ten million.
class Vocabulary {
 public:
  /// Throws Error, beginning with `file`, for an id that is out of range or duplicate.
  Vocabulary(std::vector<std::pair<std::string, std::int64_t>> tokens, const std::string& file);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  Vocabulary(Vocabulary&&) = default;

  std::optional<std::int32_t> find(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  /// The token with this id, if any.
  std::optional<std::string_view> token(std::int32_t id) const;
  /// The largest id + 1.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::vector<std::optional<std::string>> tokens_;  // by id; never changed, so views last
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

/// Parses `vocab.txt`: one token per line, numbered from 0. A duplicate token gets the last number,
/// as in Hugging Face. Throws Error with file and line.
Vocabulary parse_vocab_txt(std::string_view text, const std::string& file);
/// Parses `vocab.json`: an object of token: id. Throws Error with the file.
Vocabulary parse_vocab_json(std::string_view text, const std::string& file);

}  // namespace petlab::trainer
