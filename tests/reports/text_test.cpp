#include "reports/text.h"

#include "tests/support/catch.h"

namespace petlab::reports {
namespace {

TEST_CASE("The display width counts terminal columns", "[reports]") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("±—−") == 3);
  CHECK(display_width("表") == 2);
  CHECK(display_width("e\xCC\x81") == 1);  // an e with a combining accent
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("") == 0);
}

TEST_CASE("Invalid UTF-8 and control characters never reach the output", "[reports]") {
  CHECK(printable("a\x1b[31mb") == "a\xEF\xBF\xBD[31mb");
  CHECK(printable("a\nb") ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(printable_lines("a\x1b\n\nb\n") == std::vector<std::string>{"a\xEF\xBF\xBD", "", "b"});
  CHECK(printable_lines("").empty());
  CHECK(printable("\xff") == "\xEF\xBF\xBD");
  CHECK(printable("表") == "表");
}

TEST_CASE("Numbers for people have decimals, commas and a real minus sign", "[reports]") {
  CHECK(number_text(75.314, 2) == "75.31");
  CHECK(number_text(-0.001, 2) == "0.00");
  CHECK(number_text(-1.5, 1) == "−1.5");
  CHECK(number_text(1234567, 0) == "1,234,567");
  CHECK(number_text(1234.5, 2) == "1,234.50");
  CHECK(number_text(0.003, std::nullopt) == "0.003");
  CHECK(number_text(3e-05, std::nullopt) == "3e-05");
  CHECK(number_text(2376000, std::nullopt) == "2,376,000");
  CHECK(difference_text(0.5, 2) == "+0.50");
  CHECK(difference_text(-0.5, 2) == "−0.50");
  CHECK(difference_text(-0.001, 2) == "±0.00");
  CHECK(exact_text(0.1 + 0.2) == "0.30000000000000004");
}

}  // namespace
}  // namespace petlab::reports
