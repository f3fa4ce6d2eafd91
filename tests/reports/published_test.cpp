#include "reports/published.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/builtin.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/programs.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

// Compares every number of the authoritative file with petlab's and counts them.
class PrintedNumbers {
 public:
  void value(const std::string& table, const std::string& row, const std::string& column,
             const Json& wanted) {
    INFO(table << ", " << row << ", " << column);
    const PublishedValue* found = published_numbers().find(table, row, column);
    if (wanted.is_null()) {
      CHECK(found == nullptr);
      return;
    }
    REQUIRE(found != nullptr);
    if (wanted.is_string()) {
      CHECK(std::get<std::string>(found->value) == wanted.get<std::string>());
    } else {
      CHECK(std::get<double>(found->value) == wanted.get<double>());
    }
    ++counted;
  }

  void scores(const std::string& table, const std::string& prefix, const Json& rows) {
    for (const Json& row : rows) {
      const std::string key = prefix + row.at("row").get<std::string>();
      for (const char* column : {"ft_params_percent", "bls_percent", "average"}) {
        value(table, key, column, row.at(column));
      }
      if (!row.contains("scores")) continue;
      for (const auto& [column, score] : row.at("scores").items()) value(table, key, column, score);
    }
  }

  void columns(const std::string& table, const std::string& row, const Json& names,
               const Json& values) {
    REQUIRE(names.size() == values.size());
    for (std::size_t i = 0; i < names.size(); ++i) value(table, row, names[i], values[i]);
  }

  int counted = 0;
};

TEST_CASE("The published numbers equal the authoritative list if it is available", "[reports]") {
  const auto file = testing::published_values();
  if (!file) return;
  std::ifstream in(*file);
  const Json tables = Json::parse(in).at("tables");
  PrintedNumbers compare;
  compare.scores("table1", "", tables["table1"]["rows"]);
  for (const Json& block : tables["table2"]["blocks"]) {
    compare.scores("table2", block["block"].get<std::string>() + " ", block["rows"]);
  }
  compare.scores("table3", "", tables["table3"]["rows"]);
  for (const std::string table : {"table4", "table12", "table13"}) {
    for (const Json& row : tables[table]["rows"]) {
      const std::string key =
          row["group"].get<std::string>() + " " + row["module"].get<std::string>();
      compare.columns(table, key, tables[table]["columns"], row["values"]);
      if (row.contains("bls_percent")) compare.value(table, key, "bls_percent", row["bls_percent"]);
    }
  }
  for (const Json& row : tables["table5"]["rows"]) {
    compare.columns("table5", row["row"], tables["table5"]["columns"], row["values"]);
  }
  for (const Json& row : tables["table6"]["rows"]) {
    compare.value("table6", row["row"], "formula", row["formula"]);
  }
  for (const std::string table : {"table7", "table10"}) {
    for (const auto& [row, values] : tables[table]["rows"].items()) {
      compare.columns(table, row, tables[table]["columns"], values);
    }
  }
  for (const auto& [row, rate] : tables["table8"]["rows"].items()) {
    compare.value("table8", row, "mask_learning_rate", rate);
  }
  for (const auto& [row, minutes] : tables["table9"]["minutes"].items()) {
    compare.value("table9", row, "minutes", minutes);
  }
  for (const auto& [row, average] : tables["table11"]["rows"].items()) {
    compare.value("table11", row, "average", average);
  }
  for (const std::string table : {"table14", "table15", "table16"}) {
    for (const std::string kind : {"adapter", "propetl_adapter"}) {
      const Json& curve = tables[table][kind];
      for (std::size_t i = 0; i < curve["bn"].size(); ++i) {
        const std::string row = kind + " bn=" + curve["bn"][i].dump();
        compare.value(table, row, "bls_percent", curve["bls_percent"][i]);
        compare.value(table, row, "score", curve["score"][i]);
      }
    }
  }
  int ours = 0;
  for (const std::string& name : published_numbers().tables()) {
    ours += static_cast<int>(published_numbers().table(name)->values.size());
  }
  CHECK(compare.counted == ours);
  std::printf("published numbers compared: %d\n", compare.counted);
}

TEST_CASE("A published value is found by table, row and column", "[reports]") {
  const Published& numbers = published_numbers();
  CHECK(numbers.tables().size() == 16);
  const PublishedValue* average = numbers.find("table1", "propetl_adapter bn=64", "average");
  REQUIRE(average != nullptr);
  CHECK(std::get<double>(average->value) == 86.6);
  CHECK(average->erratum.empty());
  CHECK(numbers.find("table4", "GLUE prefix", "bls_percent")->erratum ==
        "the formula gives 0.142 % for only_mask same bn (64/15)");
  for (const std::string column : {"ft_params_percent", "bls_percent"}) {
    CHECK(numbers.find("table3", "full_finetuning", column)->erratum ==
          "the formula gives 12.5 %: one backbone for 8 tasks, as table 2 prints");
  }
  CHECK(numbers.find("table3", "propetl_adapter bn=64", "ft_params_percent")->erratum ==
        "the formula gives 0.0328 % a task");
  // Both columns have the same erratum.
  for (const std::string column : {"ft_params_percent", "bls_percent"}) {
    CHECK(numbers.find("table2", "single-task adapter bn=64", column)->erratum ==
          "the formula gives 1.067 %");
  }
  CHECK(numbers.find("table16", "propetl_adapter bn=6", "score")->erratum ==
        "these are table 2's trials, whose printed columns have the mean 85.33");
  CHECK(numbers.find("table1", "propetl_adapter bn=64", "nothing") == nullptr);
  CHECK(numbers.find("table1", "nothing", "average") == nullptr);
  CHECK(numbers.find("table17", "a", "b") == nullptr);
}

TEST_CASE("Published numbers that do not fit their table are refused", "[reports]") {
  const auto with = [](const std::string& tables, const std::string& errata) {
    return R"({"v": 1, "source": "s", "tables": {"t": {"title": "T", "columns": ["a"], "rows": )" +
           tables + R"(}}, "errata": )" + errata + "}";
  };
  CHECK_NOTHROW(Published(with(R"({"r": [1]})", "[]")));
  CHECK_THROWS_WITH(Published(with(R"({"r": [1, 2]})", "[]")),
                    "published numbers, t: row 'r' has 2 values, must have 1, one a column");
  CHECK_THROWS_WITH(
      Published(with(R"({"r": [1]})",
                     R"([{"table": "t", "rows": ["r"], "columns": ["b"], "says": "x"}])")),
      R"(published numbers: an erratum is about {"table":"t","rows":["r"],"columns":["b"],"says":"x"}, where nothing is printed)");
  CHECK_THROWS_WITH(Published(R"({"v": 2})"), "published numbers: version is 2, must be 1");
  CHECK_THROWS_AS(Published("{"), std::runtime_error);
}

}  // namespace
}  // namespace petlab::reports
