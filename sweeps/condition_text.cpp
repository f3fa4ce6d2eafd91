#include "sweeps/condition_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/shown.h"

namespace petlab::sweeps {
namespace {

constexpr std::int64_t kLongestRange = 10'000;
constexpr std::size_t kMostConditionBytes = 1 << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_operator(char c) { return c == '=' || c == '!' || c == '<' || c == '>'; }

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

class ConditionReader {
 public:
  ConditionReader(std::string_view text, std::string_view option) : text_(text), option_(option) {}

  std::vector<WrittenCondition> read() {
    std::vector<WrittenCondition> all;
    skip_space();
    if (at_end()) fail("nothing", "a condition such as task=cola");
    while (true) {
      all.push_back(condition());
      skip_space();
      if (at_end()) return all;
      if (!divided_ && !take_and()) fail(rest(), "`and`, a comma or the end");
      divided_ = false;
    }
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }
  void skip_space() {
    while (!at_end() && is_space(peek())) ++at_;
  }
  std::string rest() const { return base::shown(nlohmann::json(std::string(text_.substr(at_)))); }

  [[noreturn]] void fail(const std::string& found, std::string_view wanted) const {
    throw std::invalid_argument(fmt::format("{}: found {}, expected {}", option_, found, wanted));
  }

  bool take_and() {
    std::string word(text_.substr(at_, 3));
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (word.starts_with("or") && (text_.size() == at_ + 2 || is_space(text_[at_ + 2]))) {
      fail("or",
           "`and`; for one of several values write field=a,b; for anything else use petlab query");
    }
    if (word != "and" || at_ + 3 == text_.size() || !is_space(text_[at_ + 3])) return false;
    at_ += 3;
    return true;
  }

  WrittenCondition condition() {
    skip_space();
    WrittenCondition result;
    const std::size_t begin = at_;
    while (!at_end() && !is_space(peek()) && !is_operator(peek())) ++at_;
    result.word = text_.substr(begin, at_ - begin);
    if (result.word.empty()) {
      fail(at_end() ? "nothing" : rest(), "a condition such as task=cola");
    }
    skip_space();
    result.comparison = comparison(result.word);
    do {
      skip_space();
      result.values.push_back(value(result.word));
      skip_space();
    } while (take_comma());
    const bool list =
        result.comparison == Comparison::equal || result.comparison == Comparison::unequal;
    if (!list && result.values.size() > 1) {
      fail(fmt::format("{} values of {}", result.values.size(), result.word),
           "one for a comparison by size");
    }
    return result;
  }

  Comparison comparison(const std::string& word) {
    const std::size_t begin = at_;
    while (!at_end() && is_operator(peek())) ++at_;
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (found == "=" || found == "==") return Comparison::equal;
    if (found == "!=") return Comparison::unequal;
    if (found == "<") return Comparison::less;
    if (found == "<=") return Comparison::at_most;
    if (found == ">") return Comparison::greater;
    if (found == ">=") return Comparison::at_least;
    at_ = begin;
    fail(at_end() ? "nothing after " + base::shown(nlohmann::json(word)) : rest(),
         "one of = != < <= > >=");
  }

  WrittenValue value(const std::string& word) {
    WrittenValue result;
    if (!at_end() && (peek() == '\'' || peek() == '"')) {
      const char quote = peek();
      result.quoted = true;
      for (++at_;; ++at_) {
        if (at_end()) fail("a quote without a closing one", fmt::format("{} after it", quote));
        if (peek() == quote) {
          ++at_;
          if (at_end() || peek() != quote) break;
        }
        result.text += peek();
      }
      return result;
    }
    const std::size_t begin = at_;
    while (!at_end() && !is_space(peek()) && peek() != ',') ++at_;
    result.text = text_.substr(begin, at_ - begin);
    if (result.text.empty()) fail(fmt::format("no value for {}", word), "one");
    return result;
  }

  // True if another value follows. Also consumes a comma before the next condition.
  bool take_comma() {
    if (at_end() || peek() != ',') return false;
    ++at_;
    std::size_t ahead = at_;
    while (ahead < text_.size() && is_space(text_[ahead])) ++ahead;
    if (ahead < text_.size() && (text_[ahead] == '\'' || text_[ahead] == '"')) return true;
    while (ahead < text_.size() && !is_space(text_[ahead]) && text_[ahead] != ',' &&
           !is_operator(text_[ahead])) {
      ++ahead;
    }
    while (ahead < text_.size() && is_space(text_[ahead])) ++ahead;
    divided_ = ahead < text_.size() && is_operator(text_[ahead]);
    return !divided_;
  }

  std::string_view text_;
  std::string_view option_;
  std::size_t at_ = 0;
  bool divided_ = false;
};

}  // namespace

std::vector<WrittenCondition> parse_conditions(std::string_view text, std::string_view option) {
  if (text.size() > kMostConditionBytes) {
    throw std::invalid_argument(fmt::format("{}: found {} bytes, expected at most {}", option,
                                            text.size(), kMostConditionBytes));
  }
  return ConditionReader(text, option).read();
}

bool parse_range(std::string_view text, std::int64_t& first, std::int64_t& last) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos || !parse_number(text.substr(0, dots), first) ||
      !parse_number(text.substr(dots + 2), last) || first > last) {
    return false;
  }
  if (static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) >= kLongestRange) {
    throw std::invalid_argument(fmt::format("{} has more than {} numbers", text, kLongestRange));
  }
  return true;
}

std::vector<nlohmann::json> typed_values(const WrittenCondition& condition, FieldType type) {
  std::vector<nlohmann::json> all;
  for (const WrittenValue& value : condition.values) {
    const auto refuse = [&](const char* wanted) {
      throw std::invalid_argument(fmt::format("{}: found {}, expected {}", condition.word,
                                              base::shown(nlohmann::json(value.text)), wanted));
    };
    if (!value.quoted && value.text == "null") {
      if (condition.comparison != Comparison::equal &&
          condition.comparison != Comparison::unequal) {
        refuse("a value that can be compared by size");
      }
      all.emplace_back(nullptr);
      continue;
    }
    std::int64_t first = 0;
    std::int64_t last = 0;
    double number = 0;
    switch (type) {
      case FieldType::text:
        all.emplace_back(value.text);
        break;
      case FieldType::boolean:
        if (value.text == "true" || value.text == "1") {
          all.emplace_back(true);
        } else if (value.text == "false" || value.text == "0") {
          all.emplace_back(false);
        } else {
          refuse("true or false");
        }
        break;
      case FieldType::integer:
        if (parse_number(value.text, first)) {
          all.emplace_back(first);
        } else if (parse_range(value.text, first, last)) {
          for (std::int64_t each = first; each <= last; ++each) all.emplace_back(each);
        } else {
          refuse("a whole number, or several as 1..5");
        }
        break;
      case FieldType::number:
        if (!parse_number(value.text, number) || !std::isfinite(number)) refuse("a number");
        all.emplace_back(number);
        break;
    }
  }
  if (all.size() > 1 && condition.comparison != Comparison::equal &&
      condition.comparison != Comparison::unequal) {
    throw std::invalid_argument(fmt::format(
        "{}: found several values, expected one for a comparison by size", condition.word));
  }
  return all;
}

}  // namespace petlab::sweeps
