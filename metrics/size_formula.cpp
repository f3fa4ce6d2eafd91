#include "metrics/size_formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace petlab::metrics {
namespace {

constexpr std::string_view kDot = "·";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_size_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end == std::string_view::npos ? end : end + separator.size();
  }
  return parts;
}

void multiply(std::int64_t& product, std::int64_t factor, const SizeFormula& formula) {
  if (__builtin_mul_overflow(product, factor, &product)) {
    throw std::invalid_argument(fmt::format("{} is above 2^63 - 1", formula.text()));
  }
}

}  // namespace

SizeFormula::SizeFormula(std::string_view text) {
  std::string dotted(text);
  for (std::size_t at = 0; (at = dotted.find('*', at)) != std::string::npos;) {
    dotted.replace(at, 1, kDot);
  }
  for (const std::string_view part : split(dotted, "+")) {
    Product product;
    for (const std::string_view factor : split(part, kDot)) {
      std::int64_t number = 0;
      const char* const end = factor.data() + factor.size();
      const auto [stop, error] = std::from_chars(factor.data(), end, number);
      const bool is_number =
          error == std::errc() && stop == end && number >= 1 && number <= 1'000'000'000;
      if (is_number) {
        multiply(product.factor, number, *this);
      } else if (is_size_name(factor)) {
        product.names.emplace_back(factor);
      } else {
        throw std::invalid_argument(fmt::format(
            "found '{}', expected a whole number from 1 to 1000000000 or a name", factor));
      }
    }
    add(std::move(product));
  }
}

std::vector<std::string> SizeFormula::names() const {
  std::vector<std::string> all;
  for (const Product& product : products_) {
    for (const std::string& name : product.names) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
  }
  return all;
}

std::int64_t SizeFormula::value(const SizeValues& values) const {
  std::int64_t sum = 0;
  for (const Product& product : products_) {
    std::int64_t result = product.factor;
    for (const std::string& name : product.names) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const auto& known) { return known.first == name; });
      if (found == values.end()) {
        throw std::invalid_argument(fmt::format("{}: there is no value of {}", text(), name));
      }
      multiply(result, found->second, *this);
    }
    if (__builtin_add_overflow(sum, result, &sum)) {
      throw std::invalid_argument(fmt::format("{} is above 2^63 - 1", text()));
    }
  }
  return sum;
}

void SizeFormula::add(Product product) {
  for (Product& known : products_) {
    if (known.names != product.names) continue;
    known.factor += product.factor;
    return;
  }
  products_.push_back(std::move(product));
}

void SizeFormula::add(const SizeFormula& other) {
  for (const Product& product : other.products_) add(product);
}

SizeFormula SizeFormula::renamed(std::string_view name, std::string_view with) const {
  SizeFormula result;
  for (Product product : products_) {
    std::replace(product.names.begin(), product.names.end(), std::string(name), std::string(with));
    result.add(std::move(product));
  }
  return result;
}

SizeFormula SizeFormula::times(std::string_view name) const {
  SizeFormula result = *this;
  for (Product& product : result.products_)
    product.names.insert(product.names.begin(), std::string(name));
  return result;
}

std::string SizeFormula::text() const {
  std::string text;
  for (const Product& product : products_) {
    if (!text.empty()) text += " + ";
    std::vector<std::string> factors = product.names;
    if (product.factor != 1 || factors.empty()) {
      factors.insert(factors.begin(), std::to_string(product.factor));
    }
    text += fmt::format("{}", fmt::join(factors, kDot));
  }
  return text;
}

std::string SizeFormula::text_as_factor() const {
  return products_.size() > 1 ? fmt::format("({})", text()) : text();
}

}  // namespace petlab::metrics
