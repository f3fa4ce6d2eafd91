#include "metrics/t5_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>

#include "base/trimmed.h"

namespace petlab::metrics {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// The number of leading digits.
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), digit) - text.begin());
}

// digits[.digits][e[+-]digits], with at least one digit before the exponent.
bool is_decimal(std::string_view text) {
  const std::size_t whole = digits(text);
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = digits(text);
    text.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  return !text.empty() && digits(text) == text.size();
}

// True if a decimal outside double's range is too small rather than too large.
bool underflows(std::string_view text) {
  const std::size_t mark = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, mark);
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  // Decimal exponent of the first nonzero digit.
  const double magnitude = static_cast<double>(point) - static_cast<double>(first);
  double exponent = 0;
  if (mark != std::string_view::npos) {
    std::string_view number = text.substr(mark + 1);
    const bool negative = number.front() == '-';
    if (negative || number.front() == '+') number.remove_prefix(1);
    for (const char c : number) exponent = exponent * 10 + (c - '0');
    if (negative) exponent = -exponent;
  }
  return magnitude + exponent < 0;
}

}  // namespace

std::optional<std::int64_t> parse_class_text(std::string_view text, std::int64_t num_labels) {
  const std::string_view label = base::trimmed(text);
  if (label.size() != 1 || !digit(label.front())) return std::nullopt;
  const std::int64_t value = label.front() - '0';
  if (value >= num_labels) return std::nullopt;
  return value;
}

std::optional<double> parse_score_text(std::string_view text) {
  std::string_view number = base::trimmed(text);
  const bool negative = number.starts_with('-');
  if (negative || number.starts_with('+')) number.remove_prefix(1);
  if (!is_decimal(number)) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    if (!underflows(number)) return std::nullopt;
    value = 0;
  }
  return negative ? -value : value;
}

std::string score_text(double score) {
  if (!std::isfinite(score)) {
    throw std::invalid_argument(fmt::format("the score {} is not finite", score));
  }
  return fmt::format("{:.1f}", std::nearbyint(score * 10) / 10);
}

Confusion confusion_of_texts(std::span<const std::int64_t> gold,
                             std::span<const std::string> generated, std::int64_t num_labels) {
  if (gold.size() != generated.size()) {
    throw std::invalid_argument(fmt::format(
        "{} gold labels and {} texts: the numbers must be equal", gold.size(), generated.size()));
  }
  if (gold.empty()) throw std::invalid_argument("no examples: at least one is needed");
  Confusion confusion(num_labels);
  for (std::size_t i = 0; i < gold.size(); ++i) {
    if (const auto label = parse_class_text(generated[i], num_labels)) {
      confusion.add(gold[i], *label);
    } else {
      confusion.add_invalid(gold[i]);
    }
  }
  return confusion;
}

}  // namespace petlab::metrics
