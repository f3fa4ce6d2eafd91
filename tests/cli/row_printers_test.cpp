#include "cli/output/row_printers.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

using results::Value;

std::string printed_rows(std::unique_ptr<RowPrinter> (*make)(std::ostream&),
                         const std::vector<std::string>& names,
                         const std::vector<std::vector<Value>>& rows) {
  std::ostringstream out;
  const std::unique_ptr<RowPrinter> printer = make(out);
  printer->columns(names);
  for (const std::vector<Value>& row : rows) CHECK(printer->row(row));
  printer->end();
  return out.str();
}

// A small table as printed in a terminal of this width.
template <int width>
std::string printed_in() {
  return printed_rows([](std::ostream& out) { return table_printer(out, 1, width); },
                      {"task", "n", "mean", "what it says"},
                      {{std::string("cola"), std::int64_t{3}, 0.5, std::string("a is better")},
                       {std::string("rte"), std::int64_t{2}, 0.25, std::string("too few")}});
}

std::unique_ptr<RowPrinter> whole_table(std::ostream& out) { return table_printer(out, 1, 0); }

const Value kNull;
const Value kEmpty = std::string();

}  // namespace

TEST_CASE("Formats distinguish NULL, empty text, the text NULL and zero", "[cli]") {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const std::vector<std::vector<Value>> rows = {
      {kNull, kEmpty, std::string("NULL"), std::int64_t{0}},
      {kEmpty, kNull, std::string(" "), 0.0}};
  CHECK(printed_rows(csv_printer, names, rows) == "a,b,c,d\n,\"\",NULL,0\n\"\",, ,0\n");
  CHECK(printed_rows(spreadsheet_printer, names, rows) == "a,b,c,d\n,\"\",NULL,0\n\"\",, ,0\n");
  CHECK(printed_rows(json_printer, names, rows) ==
        "[{\"a\":null,\"b\":\"\",\"c\":\"NULL\",\"d\":0},\n"
        " {\"a\":\"\",\"b\":null,\"c\":\" \",\"d\":0.0}]\n");
  CHECK(printed_rows(json_lines_printer, names, rows) ==
        "{\"a\":null,\"b\":\"\",\"c\":\"NULL\",\"d\":0}\n"
        "{\"a\":\"\",\"b\":null,\"c\":\" \",\"d\":0.0}\n");
  CHECK(printed_rows(markdown_printer, names, rows) ==
        "| a | b | c | d |\n| --- | --- | --- | ---: |\n|  |  | NULL | 0 |\n|  |  |   | 0 |\n");
  // NULL does not turn a column of numbers into a text column.
  CHECK(printed_rows(whole_table, {"n", "t"},
                     {{std::int64_t{12345}, kEmpty}, {kNull, std::string("x")}, {2.5, kNull}}) ==
        "    n  t\n─────  ────\n12345\n NULL  x\n  2.5  NULL\n");
}

TEST_CASE("A table wider than the terminal is printed in blocks that start with its keys",
          "[cli]") {
  const std::string whole =
      "task  n  mean  what it says\n────  ─  ────  ────────────\n"
      "cola  3   0.5  a is better\nrte   2  0.25  too few\n";
  CHECK(printed_in<0>() == whole);
  CHECK(printed_in<27>() == whole);
  CHECK(printed_in<26>() ==
        "task  n  mean\n────  ─  ────\ncola  3   0.5\nrte   2  0.25\n\n"
        "task  what it says\n────  ────────────\ncola  a is better\nrte   too few\n");
  // A column wider than the terminal has its own block.
  CHECK(printed_in<8>() ==
        "task  n\n────  ─\ncola  3\nrte   2\n\ntask  mean\n────  ────\ncola   0.5\nrte   0.25\n\n"
        "task  what it says\n────  ────────────\ncola  a is better\nrte   too few\n");
}

TEST_CASE("Repeated column names get distinct JSON keys", "[cli]") {
  const std::vector<std::string> names = {"n", "n", "m", "n"};
  const std::vector<std::vector<Value>> rows = {
      {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}}};
  CHECK(printed_rows(json_printer, names, rows) == "[{\"n\":1,\"n:1\":2,\"m\":3,\"n:2\":4}]\n");
  CHECK(printed_rows(json_lines_printer, names, rows) == "{\"n\":1,\"n:1\":2,\"m\":3,\"n:2\":4}\n");
  CHECK(printed_rows(csv_printer, names, rows) == "n,n,m,n\n1,2,3,4\n");
  CHECK(printed_rows(whole_table, names, rows) == "n  n  m  n\n─  ─  ─  ─\n1  2  3  4\n");
  CHECK(printed_rows(markdown_printer, names, rows) ==
        "| n | n | m | n |\n| ---: | ---: | ---: | ---: |\n| 1 | 2 | 3 | 4 |\n");
}

TEST_CASE("Without rows the header is printed, without columns nothing", "[cli]") {
  CHECK(printed_rows(csv_printer, {"a", "b,c"}, {}) == "a,\"b,c\"\n");
  CHECK(printed_rows(json_printer, {"a"}, {}) == "[]\n");
  CHECK(printed_rows(json_lines_printer, {"a"}, {}).empty());
  CHECK(printed_rows(whole_table, {"a"}, {}) == "a\n─\n");
  CHECK(printed_rows(whole_table, {}, {}).empty());
  CHECK(printed_rows(markdown_printer, {"a"}, {}) == "| a |\n| --- |\n");
  CHECK(printed_rows(markdown_printer, {}, {}).empty());
}

TEST_CASE("Delimiters are quoted and formulas are marked as text", "[cli]") {
  const std::vector<std::vector<Value>> rows = {
      {std::string("a,b"), std::string("say \"so\""), std::string("two\nlines"), std::string("\r")},
      {std::string("=1+1"), std::string("-x"), std::int64_t{-1}, std::string("plain")}};
  CHECK(printed_rows(csv_printer, {"a", "b", "c", "d"}, rows) ==
        "a,b,c,d\n\"a,b\",\"say \"\"so\"\"\",\"two\nlines\",\"\r\"\n=1+1,-x,-1,plain\n");
  CHECK(printed_rows(spreadsheet_printer, {"a", "b", "c", "d"}, {rows[1]}) ==
        "a,b,c,d\n'=1+1,'-x,-1,plain\n");
  CHECK(printed_rows(markdown_printer, {"a|b"}, {{std::string("x|y_z <b> [l]")}}) ==
        "| a\\|b |\n| --- |\n| x\\|y\\_z \\<b> \\[l] |\n");
}

}  // namespace petlab::cli
