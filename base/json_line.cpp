#include "base/json_line.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <stdexcept>

namespace petlab::base {
namespace {

// True for bytes that end a plain run in a string: quote, backslash, control characters.
constexpr std::array<bool, 256> kStops = [] {
  std::array<bool, 256> stops{};
  for (int c = 0; c < 0x20; ++c) stops[static_cast<std::size_t>(c)] = true;
  stops['"'] = true;
  stops['\\'] = true;
  return stops;
}();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

unsigned hex4(std::string_view digits) {
  unsigned value = 0;
  for (const char c : digits.substr(0, 4)) value = value * 16 + static_cast<unsigned>(hex_digit(c));
  return value;
}

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonLine::refuse(std::string_view wanted) const {
  std::string found = "the end of the line";
  if (at_ < text_.size()) {
    found = "'";
    for (const char c : text_.substr(at_, 20)) {
      if (static_cast<unsigned char>(c) < 0x20) {
        found += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
      } else {
        found += c;
      }
    }
    // The cut may be inside a character.
    while (found.size() > 1 && (static_cast<unsigned char>(found.back()) & 0x80) != 0) {
      found.pop_back();
    }
    found += "'";
  }
  throw std::runtime_error(fmt::format("found {} at byte {}, expected {}", found, at_, wanted));
}

void JsonLine::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) {
    ++at_;
  }
}

void JsonLine::open() {
  skip_space();
  if (peek() != '{') refuse("a JSON object");
  ++at_;
}

bool JsonLine::next_key(std::string_view& key) {
  skip_space();
  if (peek() == '}') {
    ++at_;
    skip_space();
    if (at_ != text_.size()) refuse("the end of the line after the object");
    return false;
  }
  if (!first_) {
    if (peek() != ',') refuse("',' or '}'");
    ++at_;
    skip_space();
  }
  first_ = false;
  if (peek() != '"') refuse("a key in double quotes");
  const JsonToken token = string();
  if (token.escaped) {
    key_ = unescaped(token);
    key = key_;
  } else {
    key = token.raw;
  }
  skip_space();
  if (peek() != ':') refuse("':'");
  ++at_;
  return true;
}

JsonToken JsonLine::value() {
  skip_space();
  switch (peek()) {
    case '"':
      return string();
    case '{':
    case '[':
      return nested();
    case 't':
      return word("true", JsonToken::Kind::boolean);
    case 'f':
      return word("false", JsonToken::Kind::boolean);
    case 'n':
      return word("null", JsonToken::Kind::null);
    default:
      return number();
  }
}

JsonToken JsonLine::string() {
  JsonToken token{JsonToken::Kind::string, {}, false};
  const std::size_t begin = ++at_;
  while (true) {
    while (at_ < text_.size() && !kStops[static_cast<unsigned char>(text_[at_])]) ++at_;
    if (at_ == text_.size()) refuse("the closing double quote of a string");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') refuse("a string without control characters");
    token.escaped = true;
    ++at_;
    switch (peek()) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        ++at_;
        break;
      case 'u':
        ++at_;
        for (int i = 0; i < 4; ++i, ++at_) {
          if (hex_digit(peek()) < 0) refuse("four hexadecimal digits");
        }
        break;
      default:
        refuse("one of \"\\/bfnrtu after a backslash");
    }
  }
  token.raw = text_.substr(begin, at_ - begin);
  ++at_;
  return token;
}

JsonToken JsonLine::number() {
  const std::size_t begin = at_;
  const auto digits = [&] {
    if (!is_digit(peek())) {
      at_ = begin;
      refuse("a JSON value");
    }
    while (is_digit(peek())) ++at_;
  };
  if (peek() == '-') ++at_;
  if (peek() == '0') {
    ++at_;
  } else {
    digits();
  }
  if (peek() == '.') {
    ++at_;
    digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    digits();
  }
  return {JsonToken::Kind::number, text_.substr(begin, at_ - begin), false};
}

JsonToken JsonLine::word(std::string_view literal, JsonToken::Kind kind) {
  if (text_.substr(at_, literal.size()) != literal) refuse("a JSON value");
  const std::string_view raw = text_.substr(at_, literal.size());
  at_ += literal.size();
  return {kind, raw, false};
}

JsonToken JsonLine::nested() {
  if (++depth_ > kMaxJsonDepth) {
    refuse(fmt::format("at most {} levels of nesting", kMaxJsonDepth));
  }
  const std::size_t begin = at_;
  const bool object = text_[at_] == '{';
  const char close = object ? '}' : ']';
  ++at_;
  skip_space();
  if (peek() == close) {
    ++at_;
  } else {
    while (true) {
      if (object) {
        skip_space();
        if (peek() != '"') refuse("a key in double quotes");
        string();
        skip_space();
        if (peek() != ':') refuse("':'");
        ++at_;
      }
      value();
      skip_space();
      const char c = peek();
      if (c != ',' && c != close) refuse(object ? "',' or '}'" : "',' or ']'");
      ++at_;
      if (c == close) break;
    }
  }
  --depth_;
  return {object ? JsonToken::Kind::object : JsonToken::Kind::array,
          text_.substr(begin, at_ - begin), false};
}

std::string unescaped(const JsonToken& token) {
  if (!token.escaped) return std::string(token.raw);
  const std::string_view raw = token.raw;
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    switch (raw[++i]) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        unsigned code = hex4(raw.substr(i + 1));
        i += 4;
        const bool high = code >= 0xD800 && code < 0xDC00;
        if (high && raw.substr(i + 1, 2) == "\\u") {
          const unsigned low = hex4(raw.substr(i + 3));
          if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
          }
        }
        if (code >= 0xD800 && code < 0xE000) {
          throw std::runtime_error("found half of a surrogate pair, expected a character");
        }
        append_utf8(out, code);
        break;
      }
      default:
        out += raw[i];
    }
  }
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (!kStops[c]) continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text, plain);
  out += '"';
}

void append_number(std::string& out, double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}

void append_number(std::string& out, std::int64_t value) {
  char buffer[24];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}

}  // namespace petlab::base
