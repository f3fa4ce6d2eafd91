#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::base {

/// A value as it stands in the line, cut out but not yet read.
struct JsonToken {
  enum class Kind { absent, null, boolean, number, string, array, object };
  Kind kind = Kind::absent;
  std::string_view raw;  // strings without their quotes
  bool escaped = false;  // a string that holds backslashes
};

/// Levels of nesting that are read in JSON from outside: what walks a tree calls itself.
inline constexpr int kMaxJsonDepth = 64;

/// Walks through one JSON object without building a tree. Checks the whole grammar but not UTF-8,
/// which the caller checks for the line as a whole. Throws std::runtime_error.
class JsonLine {
 public:
  explicit JsonLine(std::string_view text) : text_(text) {}
  /// Before the first key: expects `{`.
  void open();
  /// Moves to the next key; false after the last, when the end of the text was reached.
  bool next_key(std::string_view& key);
  /// The value of the key; nested values are checked and returned whole.
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
