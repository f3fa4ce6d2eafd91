#include "metrics/size_formula.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

using petlab::metrics::SizeFormula;

TEST_CASE("a size formula is a sum of products", "[metrics]") {
  const SizeFormula formula("2*bn·d + bn + 3·d*2 + bn");
  CHECK(formula.text() == "2·bn·d + 2·bn + 6·d");
  CHECK(formula.text_as_factor() == "(2·bn·d + 2·bn + 6·d)");
  CHECK(formula.names() == std::vector<std::string>{"bn", "d"});
  CHECK(formula.value({{"d", 5}, {"bn", 2}}) == 2 * 10 + 4 + 30);
  CHECK(formula.times("k").text() == "2·k·bn·d + 2·k·bn + 6·k·d");
  CHECK(formula.renamed("bn", "d").text() == "2·d·d + 8·d");
  CHECK(SizeFormula("12").text() == "12");
  CHECK(SizeFormula().value({}) == 0);
  CHECK(SizeFormula().text().empty());
}

TEST_CASE("a size formula that is not a sum of products is refused", "[metrics]") {
  const std::string expected = ", expected a whole number from 1 to 1000000000 or a name";
  CHECK_THROWS_WITH(SizeFormula(""), "found ''" + expected);
  CHECK_THROWS_WITH(SizeFormula("2·"), "found ''" + expected);
  CHECK_THROWS_WITH(SizeFormula("a + + b"), "found ''" + expected);
  CHECK_THROWS_WITH(SizeFormula("(a + b)"), "found '(a'" + expected);
  CHECK_THROWS_WITH(SizeFormula("a - b"), "found 'a - b'" + expected);
  CHECK_THROWS_WITH(SizeFormula("0·a"), "found '0'" + expected);
  CHECK_THROWS_WITH(SizeFormula("1.5·a"), "found '1.5'" + expected);
  CHECK_THROWS_WITH(SizeFormula("a").value({{"b", 1}}), "a: there is no value of a");
}

TEST_CASE("a size beyond 64 bits is refused", "[metrics]") {
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_WITH(SizeFormula("a·a").value({{"a", large}}), "a·a is above 2^63 - 1");
  const std::int64_t half = std::int64_t{1} << 62;
  CHECK_THROWS_WITH(SizeFormula("a + b").value({{"a", half}, {"b", half}}),
                    "a + b is above 2^63 - 1");
}
