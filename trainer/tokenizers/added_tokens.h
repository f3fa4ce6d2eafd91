#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

/// A token that is found in the text before it is cut into words.
struct AddedToken {
  std::string content;       // not empty
  std::string pattern = {};  // what is looked for; empty: the content
  std::int32_t id = 0;
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // only where no letter, digit or underscore stands beside it
  bool special = true;       // left out by decode where asked
  // Looked for in the normalised text, not as it is written, and behind those that are not.
  bool normalized = false;

  const std::string& wanted() const { return pattern.empty() ? content : pattern; }
};

/// Cuts texts at added tokens: the leftmost first, among those the longest.
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
  std::array<bool, 256> starts_{};  // bytes that a token begins with
};

}  // namespace petlab::trainer
