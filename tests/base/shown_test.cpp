#include "base/shown.h"

#include <nlohmann/json.hpp>

#include "base/file_problems.h"
#include "base/line_ends.h"
#include "base/shallow_json.h"
#include "base/yaml_tree.h"
#include "tests/support/catch.h"

namespace petlab::base {
namespace {

std::string yaml_problem(const std::string& text) {
  FileProblems problems("f.yaml");
  parse_yaml(text, problems);
  try {
    problems.throw_if_any();
  } catch (const FileProblemsError& error) {
    return error.what();
  }
  return "";
}

std::string json_refusal(const std::string& text) {
  try {
    parse_shallow_json(text, "f.json");
  } catch (const nlohmann::json::exception& error) {
    return json_problem(error);
  }
  return "";
}

TEST_CASE("A quoted text is one short line of UTF-8 without control characters", "[base]") {
  CHECK(in_quotes("learning_rate") == "'learning_rate'");
  CHECK(in_quotes("a\r\nb\x1b[1m") == "'a\\r\\nb\\u001b[1m'");
  CHECK(in_quotes("\x7f\xc2\x9b\xff") == "'\uFFFD\uFFFD\uFFFD'");
  CHECK(in_quotes("\uFEFFa\u200Bb\u2060") == "'\\ufeffa\\u200bb\\u2060'");
  CHECK(in_quotes("\u2026\uFEFE\u20AC") == "'\u2026\uFEFE\u20AC'");
  CHECK(in_quotes(std::string(60, 'x')) == "'" + std::string(60, 'x') + "'");
  CHECK(in_quotes(std::string(61, 'x')) == "'" + std::string(57, 'x') + "…'");
  // The cut is before a character of two bytes that does not fit completely.
  CHECK(in_quotes(std::string(56, 'x') + "\u00e9 and more") == "'" + std::string(56, 'x') + "…'");
  CHECK(shown(std::string(2 << 20, 'x')).size() < 70);
  CHECK(list_in_quotes(std::vector<std::string>{"a", "b"}) == "'a', 'b'");
  CHECK(list_in_quotes(std::vector<std::string>{"a", "b", "c"}, 1) == "'a' and 2 more");
}

TEST_CASE("A message keeps its lines, and the end of a line that is cut", "[base]") {
  CHECK(printable_message("a\nb\x1b[31m") == "a\nb\uFFFD[31m");
  CHECK(printable_message("") == "");
  const std::string cut = printable_message(std::string(1 << 20, 'x') + "; use --tabs");
  CHECK(cut.size() < 2010);
  CHECK(cut.ends_with("; use --tabs"));
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "l\n";
  CHECK(printable_message(lines).ends_with("l\n… and 880 more lines"));
}

TEST_CASE("An error in JSON is shown with one position and a short token", "[base]") {
  CHECK(
      json_refusal("{\"a\"").starts_with("column 5: syntax error while parsing object separator"));
  CHECK(json_refusal("{\n\"a\" 1}").starts_with("line 2, column 5: "));
  CHECK(json_refusal("{\"a\": " + std::string(2 << 20, 'x')).size() < 300);
  CHECK(json_refusal("{\"" + std::string(2 << 20, 'x')).size() < 300);
}

TEST_CASE("Lines that end with a carriage return alone are reported as such", "[base]") {
  CHECK(lines_end_with_cr("a\rb"));
  CHECK(lines_end_with_cr("a\rb\r"));
  CHECK_FALSE(lines_end_with_cr("a\r"));
  CHECK_FALSE(lines_end_with_cr("a\rb\r\n"));
  CHECK_FALSE(lines_end_with_cr("ab"));
  CHECK_FALSE(lines_end_with_cr(""));
  CHECK(
      yaml_problem("sweep: a\rabout: b\r") ==
      "f.yaml:1: found lines that end with a carriage return (CR) alone, expected newlines (LF or "
      "CRLF)");
}

TEST_CASE("A merge key of YAML is refused by name", "[base]") {
  CHECK(yaml_problem("a: &x {b: 1}\nc:\n  <<: *x\n") ==
        "f.yaml:3: found the merge key <<, which is not supported; in a sweep file, put shared "
        "settings under base and differences under variants");
  CHECK(yaml_problem("'<<': 1\n") == "");
}

}  // namespace
}  // namespace petlab::base
