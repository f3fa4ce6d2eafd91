#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/published_backbones.h"
#include "metrics/storage.h"
#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/storage_formula.h"

// Recomputes every storage percentage of the paper from the formulas, to the printed digits.

using namespace petlab::metrics;
using petlab::testing::read_json;

namespace {

// A printed percentage and the one computed by the formula.
struct Value {
  std::string where;
  double printed = 0;
  int decimals = 0;  // printed decimals
  double computed = 0;
};

// A printed value that contradicts the paper's formulas, and the value that they give.
struct Erratum {
  std::string where;
  double printed = 0;
  double formula = 0;
};

// From "Errata" of reference/method.md.
const std::vector<Erratum> kStorageErrata = {
    {"table14 adapter bn=769", 12.72, 12.734},          // the printed 12.72 is bn 768
    {"table14 propetl_adapter bn=3042", 3.706, 3.670},  // the printed 3.706 is bn 3072
    {"table2 single-task adapter bn=64", 1.070, 1.067},
    {"table2 multi-task adapter bn=64", 0.130, 0.133},
    {"table4 GLUE prefix only_mask same bn 64/15", 0.11, 0.142},
    {"table12 GLUE prefix only_mask same bn 64/15", 0.11, 0.142},
    {"table4 GLUE lora only_mask same bn 32/15", 0.11, 0.142},
    {"table12 GLUE lora only_mask same bn 32/15", 0.11, 0.142},
    {"table4 GLUE lora only_mask same k 8/50", 0.11, 0.118},
    {"table12 GLUE lora only_mask same k 8/50", 0.11, 0.118},
    {"table4 Ro-En adapter only_mask same bn 384/8", 0.46, 0.520},
    {"table12 Ro-En adapter only_mask same bn 384/8", 0.46, 0.520},
    {"table12 GLUE prefix only_mask same k and bn 64/50", 0.48, 0.473},
    {"table12 GLUE lora only_mask same k and bn 32/50", 0.48, 0.473},
    // Eight tasks share one backbone. Table 2 prints that for the same setting.
    {"table3 full_finetuning", 25, 12.5},
};

const std::vector<Erratum> kParameterErrata = {
    {"table1 propetl_adapter bn=64", 1.04, 1.026},
    {"table1 propetl_lora bn=32", 1.04, 1.025},
    {"table2 multi-task propetl_adapter bn=64", 0.156, 0.182},
    {"table2 multi-task propetl_adapter bn=6", 0.016, 0.017},
    {"table3 full_finetuning", 25, 12.5},
    // This one is not listed there. It follows the formula of table 2's errata.
    {"table3 propetl_adapter bn=64", 0.0283, 0.0328},
};

// The decimals of a number's shortest text, or `least` if the paper prints trailing zeros.
int decimals_of(const nlohmann::json& printed, int least = 0) {
  const std::string text = printed.dump();
  const std::size_t point = text.find('.');
  const int digits = point == std::string::npos ? 0 : static_cast<int>(text.size() - point - 1);
  return std::max(text.ends_with(".0") ? 0 : digits, least);
}

bool rounds_to(double computed, double printed, int decimals) {
  return std::fabs(computed - printed) <= 0.5 * std::pow(10.0, -decimals) + 1e-12;
}

// Checks that all values match except `errata`, each of which must occur with its printed value.
void check_all(const std::vector<Value>& values, const std::vector<Erratum>& errata) {
  std::vector<bool> met(errata.size(), false);
  for (const Value& value : values) {
    INFO(value.where << ": printed " << value.printed << ", computed " << value.computed);
    bool erratum = false;
    for (std::size_t i = 0; i < errata.size(); ++i) {
      if (errata[i].where != value.where) continue;
      erratum = true;
      met[i] = true;
      CHECK(errata[i].printed == value.printed);
      CHECK(rounds_to(value.computed, errata[i].formula, decimals_of(errata[i].formula)));
    }
    CHECK(rounds_to(value.computed, value.printed, value.decimals) == !erratum);
  }
  for (std::size_t i = 0; i < errata.size(); ++i) {
    INFO("erratum " << errata[i].where);
    CHECK(met[i]);
  }
}

std::int64_t parameters_of(const std::string& backbone) {
  return find_published_backbone(backbone)->parameters;
}

// Reads a row's name, such as "propetl_adapter bn=64" or "prefix l=64".
ModuleStorage module_of(const std::string& row, const std::string& backbone, std::int64_t tasks) {
  const PublishedBackbone* shape = find_published_backbone(backbone);
  ModuleStorage module;
  module.d_model = shape->d_model;
  module.layers = shape->layers();
  module.tasks = tasks;
  std::string name = row.substr(0, row.find(' '));
  if (name.starts_with("propetl_")) {
    module.share = true;
    module.mask = MaskKind::learned;
    name = name.substr(8);
  }
  if (name != "lora" && name != "prefix") name = "adapter";
  module.formula = petlab::testing::formula_of(name);
  module.size = std::stoll(row.substr(row.find('=') + 1));
  return module;
}

// Reads a cell of table 12, such as "64/11" under "only_mask same bn": size and percent of ones.
ModuleStorage module_of_cell(const std::string& family, const std::string& cell,
                             const std::string& column, const std::string& backbone) {
  const std::size_t bar = cell.find('/');
  ModuleStorage module = module_of(family + " n=" + cell.substr(0, bar), backbone, 1);
  module.share = column == "propetl" || column == "random" || column == "only_share";
  module.mask = column == "only_share" ? MaskKind::none
                : column == "random"   ? MaskKind::random
                                       : MaskKind::learned;
  module.sparsity_ratio = std::stod(cell.substr(bar + 1)) / 100;
  return module;
}

struct Percentages {
  double storage = 0;
  double trained = 0;
};

// The percentages of a row of tables 1 to 3, divided by the number of tasks.
Percentages percentages_of(const std::string& row, const std::string& backbone,
                           std::int64_t tasks) {
  const std::int64_t parameters = parameters_of(backbone);
  if (row == "full_finetuning") {
    return {bls_percent(32.0 * static_cast<double>(parameters), parameters, tasks),
            parameters_percent(parameters, parameters, tasks)};
  }
  // The paper does not print its hypernetwork's sizes.
  const bool generated = row == "hyperformer++";
  ModuleStorage module = module_of(generated ? "adapter bn=24" : row, backbone, tasks);
  if (generated) {
    module.formula = petlab::testing::formula_of(row);
    module.other_sizes = {64, 128, 64};
  }
  return {bls_percent(bls_bits(module), parameters, tasks),
          parameters_percent(trained_parameters(module), parameters, tasks)};
}

// Adds both columns of percentages of tables 1 to 3.
void add_rows(const nlohmann::json& rows, const std::string& where, const std::string& backbone,
              std::int64_t tasks, int least_decimals, std::vector<Value>& storage,
              std::vector<Value>& trained) {
  for (const auto& row : rows) {
    const std::string name = row.at("row");
    const Percentages computed = percentages_of(name, backbone, tasks);
    const auto& bls = row.at("bls_percent");
    const auto& ft = row.at("ft_params_percent");
    storage.push_back(
        {where + " " + name, bls, decimals_of(bls, least_decimals), computed.storage});
    trained.push_back({where + " " + name, ft, decimals_of(ft), computed.trained});
  }
}

void add_tables_1_to_3(const nlohmann::json& tables, std::vector<Value>& storage,
                       std::vector<Value>& trained) {
  add_rows(tables.at("table1").at("rows"), "table1", "roberta-base", 1, 2, storage, trained);
  for (const auto& block : tables.at("table2").at("blocks")) {
    const std::string name = block.at("block");
    // This table has three decimals: 1.070, 0.130.
    add_rows(block.at("rows"), "table2 " + name, "t5-base", name == "single-task" ? 1 : 8, 3,
             storage, trained);
  }
  add_rows(tables.at("table3").at("rows"), "table3", "t5-3b", 8, 0, storage, trained);
}

const nlohmann::json& row_of(const nlohmann::json& rows, std::string_view group,
                             std::string_view module) {
  for (const auto& row : rows) {
    if (row.at("group").get_ref<const std::string&>() == group &&
        row.at("module").get_ref<const std::string&>() == module) {
      return row;
    }
  }
  throw std::runtime_error(fmt::format("no row {} {}", group, module));
}

// Adds tables 4 and 12. A row of table 4 has one percentage, for settings of table 12.
void add_ablations(const nlohmann::json& tables, std::vector<Value>& storage) {
  const auto& table12 = tables.at("table12");
  const auto columns = table12.at("columns").get<std::vector<std::string>>();
  for (const auto& row : table12.at("rows")) {
    const std::string group = row.at("group");
    const std::string module = row.at("module");
    if (module == "bls_percent") continue;
    const std::string backbone = group == "Ro-En" ? "t5-base" : "roberta-base";
    const auto& printed = row_of(table12.at("rows"), group, "bls_percent").at("values");
    const auto add = [&](const std::string& table, const std::string& column, std::size_t i,
                         const nlohmann::json& percent) {
      const std::string cell = row.at("values").at(i);
      const ModuleStorage shape = module_of_cell(module, cell, column, backbone);
      storage.push_back({table + " " + group + " " + module + " " + column + " " + cell, percent,
                         decimals_of(percent),
                         bls_percent(bls_bits(shape), parameters_of(backbone))});
    };
    for (std::size_t i = 0; i < columns.size(); ++i) add("table12", columns[i], i, printed.at(i));
    const auto& table4 = tables.at("table4");
    const auto& percent = row_of(table4.at("rows"), group, module).at("bls_percent");
    for (const auto& column : table4.at("columns").get<std::vector<std::string>>()) {
      const std::string setting = column == "random" ? "propetl" : column;
      const auto found = std::find(columns.begin(), columns.end(), setting);
      REQUIRE(found != columns.end());
      add("table4", column, static_cast<std::size_t>(found - columns.begin()), percent);
    }
  }
}

void add_scaling(const nlohmann::json& tables, std::vector<Value>& storage) {
  for (const std::string table : {"table14", "table15", "table16"}) {
    const std::int64_t tasks = table == "table16" ? 8 : 1;
    for (const std::string variant : {"adapter", "propetl_adapter"}) {
      const auto& row = tables.at(table).at(variant);
      for (std::size_t i = 0; i < row.at("bn").size(); ++i) {
        const std::string name = variant + " bn=" + row.at("bn").at(i).dump();
        const auto& printed = row.at("bls_percent").at(i);
        storage.push_back({table + " " + name, printed, decimals_of(printed),
                           percentages_of(name, "t5-base", tasks).storage});
      }
    }
  }
}

}  // namespace

TEST_CASE("every storage percentage of the paper follows from its formulas, except errata",
          "[metrics]") {
  const auto file = petlab::testing::published_values();
  if (!file) return;
  const auto published = read_json(*file);
  std::vector<Value> storage;
  std::vector<Value> trained;
  add_tables_1_to_3(published.at("tables"), storage, trained);
  add_ablations(published.at("tables"), storage);
  add_scaling(published.at("tables"), storage);
  check_all(storage, kStorageErrata);
  std::printf("published.json: %zu storage percentages, %zu of them errata\n", storage.size(),
              kStorageErrata.size());
}

TEST_CASE("the paper's fine-tuned parameters follow from its formulas, except errata",
          "[metrics]") {
  const auto file = petlab::testing::published_values();
  if (!file) return;
  const auto published = read_json(*file);
  std::vector<Value> storage;
  std::vector<Value> trained;
  add_tables_1_to_3(published.at("tables"), storage, trained);
  check_all(trained, kParameterErrata);
  std::printf("published.json: %zu percentages of parameters, %zu of them errata\n", trained.size(),
              kParameterErrata.size());
}
