#include "base/shallow_json.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/json_line.h"
#include "tests/support/catch.h"

using namespace petlab;
using namespace petlab::base;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

// Far more levels than the stack could hold in a recursive parser.
constexpr std::size_t kDeep = 200'000;

}  // namespace

TEST_CASE("JSON of up to 64 levels is read, and deeper JSON is refused by name", "[base]") {
  const std::string most = nested(kMaxJsonDepth);
  CHECK(parse_shallow_json(most, "f.json").dump() == most);
  CHECK(parse_shallow_ordered_json(R"({"b":1,"a":[]})", "f.json").dump() == R"({"b":1,"a":[]})");
  CHECK(shallow_json_or_none(most).dump() == most);
  CHECK(shallow_ordered_json_or_none(most).dump() == most);
  // Neither many siblings nor brackets in strings count as nesting.
  CHECK(parse_shallow_json("[" + std::string(kDeep / 3, ' ') + "[],[]]", "f.json").size() == 2);
  std::string flat = "[[]";
  for (int count = 0; count < 1000; ++count) flat += ",{}";
  CHECK(parse_shallow_json(flat + "]", "f.json").size() == 1001);
  CHECK(parse_shallow_json('"' + std::string(kDeep, '[') + '"', "f.json").is_string());
  for (const std::string& text : {nested(kMaxJsonDepth + 1), nested(kDeep), std::string(kDeep, '['),
                                  "{\"a\":" + nested(kMaxJsonDepth) + "}"}) {
    CHECK_THROWS_WITH(parse_shallow_json(text, "f.json"),
                      "f.json: must have at most 64 levels of nesting");
    CHECK_THROWS_AS(parse_shallow_ordered_json(text, "f.json"), Error);
    CHECK(shallow_json_or_none(text).is_discarded());
    CHECK(shallow_ordered_json_or_none(text).is_discarded());
    std::istringstream in(text);
    CHECK(shallow_json_or_none(in).is_discarded());
  }
  CHECK_THROWS_AS(parse_shallow_json("[1,", "f.json"), nlohmann::json::parse_error);
  CHECK(shallow_json_or_none("[1,").is_discarded());
}
