#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::base {

/// A value's raw text in the line.
struct JsonToken {
  enum class Kind { absent, null, boolean, number, string, array, object };
  Kind kind = Kind::absent;
  std::string_view raw;  // without the quotes of a string
  bool escaped = false;  // a string with backslashes
};

/// Maximum nesting of untrusted JSON, because functions on trees are recursive.
inline constexpr int kMaxJsonDepth = 64;

/// Iterates over a JSON object without building a tree. Checks the whole grammar except for UTF-8,
/// which the caller must check. Throws std::runtime_error.
class JsonLine {
 public:
  explicit JsonLine(std::string_view text) : text_(text) {}
  /// Expects `{`. Call it before the first key.
  void open();
  /// Moves to the next key. Returns false after the last one, at the end of the text.
  bool next_key(std::string_view& key);
  /// The value of the current key. Nested values are checked and returned whole.
  JsonToken value();

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;
  void skip_space();
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  JsonToken string();
  JsonToken number();
  JsonToken word(std::string_view literal, JsonToken::Kind kind);
  JsonToken nested();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool first_ = true;
  std::string key_;  // of an escaped key
};

/// The text of a string token. Throws std::runtime_error for lone surrogates.
std::string unescaped(const JsonToken& token);
/// Appends `text` in quotes, escaped; `text` must be UTF-8.
void append_quoted(std::string& out, std::string_view text);
/// Appends the shortest text that reads back as the same double.
void append_number(std::string& out, double value);
void append_number(std::string& out, std::int64_t value);

}  // namespace petlab::base
