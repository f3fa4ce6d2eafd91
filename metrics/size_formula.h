#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace petlab::metrics {

/// Values of names in formulas. If a name occurs twice, the first counts.
using SizeValues = std::vector<std::pair<std::string_view, std::int64_t>>;

/// A sum of products of whole numbers and names, such as `2·bn·d + bn + d` (`*` also multiplies).
/// A name consists of letters, digits and _, and starts with a letter.
class SizeFormula {
 public:
  /// The empty sum, 0.
  SizeFormula() = default;
  /// Throws std::invalid_argument with what was found and expected.
  explicit SizeFormula(std::string_view text);

  bool is_zero() const { return products_.empty(); }
  /// In order of first use, each once.
  std::vector<std::string> names() const;
  /// Throws std::invalid_argument for a name without a value, and for a value above 2^63 - 1.
  std::int64_t value(const SizeValues& values) const;

  /// Adds the products of `other`. Equal products become one.
  void add(const SizeFormula& other);
  /// This formula with another name in place of `name`.
  SizeFormula renamed(std::string_view name, std::string_view with) const;
  /// This formula times a name, which comes first in each product: `2·k·bn·d`.
  SizeFormula times(std::string_view name) const;
  /// `2·bn·d + bn + d`; empty for the empty sum.
  std::string text() const;
  /// The same as a factor: in parentheses if it is a sum of several products.
  std::string text_as_factor() const;

 private:
  struct Product {
    std::int64_t factor = 1;
    std::vector<std::string> names;
  };
  void add(Product product);

  std::vector<Product> products_;
};

}  // namespace petlab::metrics
