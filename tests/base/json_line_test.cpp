#include "base/json_line.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace petlab::base {
namespace {

std::string brackets(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') +
         std::string(static_cast<std::size_t>(levels), ']');
}

/// `key=value` for each member of an object.
std::vector<std::string> members_of(const std::string& text) {
  JsonLine line(text);
  line.open();
  std::vector<std::string> found;
  std::string_view key;
  while (line.next_key(key)) {
    const std::string name(key);
    found.push_back(name + "=" + std::string(line.value().raw));
  }
  return found;
}

}  // namespace

TEST_CASE("Nesting depth restarts with each value", "[base]") {
  const std::string deepest = brackets(kMaxJsonDepth);
  std::string text = "{";
  for (int i = 0; i < 2 * kMaxJsonDepth; ++i) {
    text += "\"k" + std::to_string(i) + "\":" + (i % 2 == 0 ? "{\"a\":[1,{}],\"b\":[[2]]}" : "[]") +
            ",";
  }
  CHECK(members_of(text + "\"last\":" + deepest + "}").back() == "last=" + deepest);
  CHECK(members_of(text + "\"last\":0}").size() == 2 * kMaxJsonDepth + 1);
  CHECK_THROWS_WITH(members_of(text + "\"last\":" + brackets(kMaxJsonDepth + 1) + "}"),
                    testing::has_text("at most 64 levels of nesting"));
  // The same holds for siblings within one value.
  std::string siblings = "[";
  for (int i = 0; i < 2 * kMaxJsonDepth; ++i) siblings += "[[]],{\"a\":{}},";
  siblings += brackets(kMaxJsonDepth - 1) + "]";
  CHECK(members_of("{\"a\":" + siblings + ",\"b\":1}") ==
        std::vector<std::string>{"a=" + siblings, "b=1"});
}

TEST_CASE("Empty containers, repeated keys and empty keys are read as written", "[base]") {
  CHECK(members_of("{}").empty());
  CHECK(members_of(R"({"a":{},"a":[],"":"","b":null})") ==
        std::vector<std::string>{"a={}", "a=[]", "=", "b=null"});
  CHECK(members_of("{\"a\" : [ 1 , { \"b\" : [ ] } ] , \"c\" : -0.5e+2 }") ==
        std::vector<std::string>{"a=[ 1 , { \"b\" : [ ] } ]", "c=-0.5e+2"});
}

}  // namespace petlab::base
