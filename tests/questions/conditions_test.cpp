#include "questions/conditions.h"

#include <set>

#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

using results::Value;

TEST_CASE("A condition selects the same trials in SQL and in memory", "[questions]") {
  const std::vector<nlohmann::json> stored = {nullptr, 1,    2.5,   "1",  "007", 7,
                                              "a b",   true, "1e3", 1000, "",    "true"};
  questions::SmallDatabase database;
  std::map<std::string, Value> values;  // by trial
  for (std::size_t i = 0; i < stored.size(); ++i) {
    sweeps::TrialConfig config = database.config("cola", i);
    config.user = nlohmann::json{{"k", stored[i]}}.dump();
    const std::string id = database.add("v", config);
    const nlohmann::json& one = stored[i];
    values[id] = one.is_null()             ? Value()
                 : one.is_boolean()        ? Value(std::int64_t{one.get<bool>()})
                 : one.is_number_integer() ? Value(one.get<std::int64_t>())
                 : one.is_number()         ? Value(one.get<double>())
                                           : Value(one.get<std::string>());
  }
  const results::ScoreReader reader(database.file());
  for (const char* text :
       {"user.k=1", "user.k='1'", "user.k=007", "user.k=7", "user.k=1e3", "user.k='1e3'",
        "user.k=null", "user.k!=null", "user.k=true", "user.k!=1", "user.k!=1,null", "user.k=''",
        "user.k='a b',2.5", "user.k<2", "user.k>=2.5", "user.k>'0'", "user.k<='1'"}) {
    INFO(text);
    results::ScoreQuestion question;
    question.where = parse_where(text);
    std::set<std::string> in_sql;
    reader.each(question,
                [&](const results::ScoredTrial& trial) { in_sql.insert(trial.trial_id); });
    std::set<std::string> in_memory;
    for (const auto& [id, value] : values) {
      if (holds(question.where.front(), value)) in_memory.insert(id);
    }
    CHECK(in_sql == in_memory);
  }
}

TEST_CASE("A tag has no order", "[questions]") {
  CHECK_THROWS_WITH(parse_where("tag<good"), "tag: found a comparison by size, expected = or !=");
}

TEST_CASE("user_KEY is the key's field, and a dot belongs to the key", "[questions]") {
  CHECK(field_named("user_a_b").user_key == "a_b");
  CHECK(field_named("user.a.b").user_key == "a.b");
  CHECK(field_named("module.kind").name == "module_kind");
}

}  // namespace
}  // namespace petlab::questions
