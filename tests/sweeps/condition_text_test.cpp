#include "sweeps/condition_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace petlab::sweeps {
namespace {

// Prints each condition as `word op [value|'value'…]`.
std::string read(std::string_view text) {
  std::string all;
  for (const WrittenCondition& condition : parse_conditions(text, "--where")) {
    all += fmt::format("{}{} {}", all.empty() ? "" : "; ", condition.word,
                       static_cast<int>(condition.comparison));
    for (const WrittenValue& value : condition.values) {
      all += value.quoted ? fmt::format(" '{}'", value.text) : " " + value.text;
    }
  }
  return all;
}

std::string refused_conditions(std::string_view text) {
  try {
    read(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was wrong";
}

std::string typed(std::string_view text, FieldType type) {
  try {
    return nlohmann::json(typed_values(parse_conditions(text, "--where").front(), type)).dump();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST_CASE("Conditions are separated by and, or by a comma", "[sweeps]") {
  CHECK(read("task=cola and module_kind=adapter") == "task 0 cola; module_kind 0 adapter");
  CHECK(read("variant=propetl,seed=42") == "variant 0 propetl; seed 0 42");
  CHECK(read("task=cola,rte , seed != 1,2 AND user.width>=3") ==
        "task 0 cola rte; seed 1 1 2; user.width 5 3");
  CHECK(read("a<1 and b<=2,c>3 and d==4") == "a 2 1; b 3 2; c 4 3; d 0 4");
  CHECK(read("variant='a, b and ''c''',\"x=1\"") == "variant 0 'a, b and 'c'' 'x=1'");
  CHECK(read("and=and") == "and 0 and");
}

TEST_CASE("The error about an invalid condition says what was found and expected", "[sweeps]") {
  CHECK(refused_conditions("") == "--where: found nothing, expected a condition such as task=cola");
  CHECK(refused_conditions("task") ==
        "--where: found nothing after 'task', expected one of = != < <= > >=");
  CHECK(refused_conditions("task=") == "--where: found no value for task, expected one");
  CHECK(refused_conditions("task=a,") == "--where: found no value for task, expected one");
  CHECK(refused_conditions("task=>a") == "--where: found '=>a', expected one of = != < <= > >=");
  CHECK(refused_conditions("task='a") ==
        "--where: found a quote without a closing one, expected ' after it");
  CHECK(refused_conditions("a=1 b=2") ==
        "--where: found 'b=2', expected `and`, a comma or the end");
  CHECK(
      refused_conditions("a=1 or b=2") ==
      "--where: found or, expected `and`; for one of several values write field=a,b; for anything "
      "else use petlab query");
  CHECK(refused_conditions("a<1,2") ==
        "--where: found 2 values of a, expected one for a comparison by size");
  CHECK(refused_conditions("a=1 and") ==
        "--where: found 'and', expected `and`, a comma or the end");
  CHECK(refused_conditions("=1") == "--where: found '=1', expected a condition such as task=cola");
}

TEST_CASE("Values are parsed as the type of their field", "[sweeps]") {
  CHECK(typed("seed=1..3,7", FieldType::integer) == "[1,2,3,7]");
  CHECK(typed("rate=1e-4,+2,null", FieldType::number) == "[0.0001,2.0,null]");
  CHECK(typed("share=true,0", FieldType::boolean) == "[true,false]");
  CHECK(typed("kind='null',lora", FieldType::text) == R"(["null","lora"])");
  CHECK(typed("seed=x", FieldType::integer) ==
        "seed: found 'x', expected a whole number, or several as 1..5");
  CHECK(typed("seed=5..1", FieldType::integer) ==
        "seed: found '5..1', expected a whole number, or several as 1..5");
  CHECK(typed("seed=1..99999", FieldType::integer) == "1..99999 has more than 10000 numbers");
  CHECK(typed("seed=-9223372036854775808..9223372036854775807", FieldType::integer) ==
        "-9223372036854775808..9223372036854775807 has more than 10000 numbers");
  CHECK(typed("seed<1..3", FieldType::integer) ==
        "seed: found several values, expected one for a comparison by size");
  CHECK(typed("rate=inf", FieldType::number) == "rate: found 'inf', expected a number");
  CHECK(typed("share=yes", FieldType::boolean) == "share: found 'yes', expected true or false");
  CHECK(typed("seed<null", FieldType::integer) ==
        "seed: found 'null', expected a value that can be compared by size");
}

}  // namespace
}  // namespace petlab::sweeps
