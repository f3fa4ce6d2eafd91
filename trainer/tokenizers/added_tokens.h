#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// A token that is found in the text before the text is split into words.
struct AddedToken {
  std::string content;       // not empty
  std::string pattern = {};  // the text to find; empty: the content
  std::int32_t id = 0;
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool single_word = false;  // matches only without an adjacent letter, digit or underscore
  bool special = true;       // decode can skip it
  // Found in the normalised text instead of the original, after the tokens that are not normalised.
  bool normalized = false;

  const std::string& wanted() const { return pattern.empty() ? content : pattern; }
};

/// Splits texts at added tokens. The leftmost match wins, and among those the longest.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Calls `plain` for each stretch of ordinary text (never empty) and `token` for each token, in
  /// order. The text must be UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& plain,
             const std::function<void(const AddedToken&)>& token) const;

  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  const AddedToken* match(std::string_view text, std::size_t position) const;

  std::vector<AddedToken> tokens_;  // longest first
  std::array<bool, 256> starts_{};  // bytes that begin a token
};

}  // namespace petlab::trainer
