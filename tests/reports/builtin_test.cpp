#include "reports/builtin.h"

#include <algorithm>
#include <cmath>

#include "reports/names.h"
#include "reports/report.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

TEST_CASE("Compiled-in files equal their sources byte for byte", "[reports]") {
  for (const BuiltinFile& file : builtin_files()) {
    INFO(file.name);
    const std::string folder = file.name.ends_with(".yaml")   ? "reports/definitions"
                               : file.name.ends_with(".json") ? "reports"
                               : file.name.ends_with(".py")   ? "reports/figures"
                                                              : "reports/page";
    CHECK(testing::read_file(testing::source_dir() / folder / file.name) == file.content);
  }
}

TEST_CASE("Every definition in the folder is compiled in, valid and named after its file",
          "[reports]") {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_dir() / "reports/definitions")) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  CHECK(builtin_reports() == names);
  for (const std::string& name : names) {
    INFO(name);
    const Definition definition = builtin_report(name);
    CHECK(definition.name == name);
    CHECK_FALSE(definition.about.empty());
    CHECK(check_names(definition, {}, published_numbers()).problems.empty());
  }
}

// RoBERTa-base with every module of the paper's ablation: one seed, 0.8 for each metric of GLUE.
Dataset ablation() {
  struct Module {
    const char* kind;
    const char* size_field;
    std::int64_t size, matched_size, shared_size;
    double matched_k;
    double bits_a_size;  // 32 · parameters of one layer for each unit of size
  };
  const Module modules[] = {{"adapter", "module_bottleneck", 64, 14, 88, 0.11, 32 * 2 * 768.0},
                            {"prefix", "module_prefix_length", 64, 15, 88, 0.15, 32 * 2 * 768.0},
                            {"lora", "module_rank", 32, 8, 44, 0.15, 32 * 4 * 768.0}};
  testing::DataMaker make;
  const auto add = [&](const Module& module, bool share, const std::string& mask, std::int64_t size,
                       std::optional<double> k) {
    const std::pair<const char*, std::vector<std::string>> tasks[] = {
        {"cola", {"matthews"}},
        {"sst2", {"accuracy"}},
        {"mrpc", {"accuracy", "f1"}},
        {"qqp", {"accuracy", "f1"}},
        {"stsb", {"pearson", "spearman"}},
        {"mnli", {"accuracy"}},
        {"qnli", {"accuracy"}},
        {"rte", {"accuracy"}}};
    for (const auto& [task, metrics] : tasks) {
      const std::size_t trial = make.trial("any", 42, task,
                                           {{"backbone", "roberta-base"},
                                            {"module_kind", module.kind},
                                            {"module_share", std::int64_t{share}},
                                            {"module_mask", mask},
                                            {module.size_field, size},
                                            {"training_mask_learning_rate", 0.003}});
      if (k) make.data.trials[trial].fields["module_sparsity_ratio"] = *k;
      make.data.trials[trial].fields["bls_bits"] = module.bits_a_size * static_cast<double>(size);
      for (const std::string& metric : metrics) make.score(trial, metric, 0.8);
    }
  };
  for (const Module& module : modules) {
    add(module, false, "none", module.size, std::nullopt);
    add(module, true, "learned", module.size, 0.5);
    add(module, true, "random", module.size, 0.5);
    add(module, false, "learned", module.size, module.matched_k);
    add(module, false, "learned", module.matched_size, 0.5);
    add(module, false, "learned", module.size, 0.5);
    add(module, true, "none", module.shared_size, std::nullopt);
  }
  return make.data;
}

TEST_CASE("The paper's definitions find each of their trials once", "[reports]") {
  for (const std::string name : {"table1", "table4", "table5", "table8", "table13"}) {
    const testing::MadeTable table =
        testing::table_of(builtin_report(name), ablation(), published_numbers());
    int scores = 0;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      for (std::size_t column = 0; column < table.columns.size(); ++column) {
        const Cell& cell = table.cells[row][column];
        INFO(name << ", " << table.rows[row].key << ", " << table.columns[column].key);
        if (table.rows[row].key == "full_finetuning") {
          CHECK(cell.measured.kind == Cell::Kind::missing);
          CHECK(cell.published.is_there());
          continue;
        }
        if (table.rows[row].key == "Ro-En adapter") {
          CHECK(cell.measured.kind == Cell::Kind::missing);
          CHECK(cell.published.is_there());
          continue;
        }
        if (table.columns[column].key == "ft_params_percent") {
          REQUIRE(cell.measured.mean);
          // Two are listed errata: 1.04 is printed, the formula gives 1.03.
          const double printed = cell.published.erratum.empty() ? *cell.published.number : 1.03;
          CHECK(std::abs(*cell.measured.mean - printed) <= 0.0051);
          continue;
        }
        if (table.columns[column].key == "bls_percent") continue;
        if (cell.measured.kind == Cell::Kind::text) continue;
        CHECK(cell.measured.n() == 1);
        CHECK(cell.measured.planned == 1);
        REQUIRE(cell.measured.mean);
        CHECK(*cell.measured.mean == Approx(80));
        CHECK(cell.trials.mixed_fields.empty());
        CHECK(cell.published.is_there() == (name != "table8"));
        ++scores;
      }
    }
    CHECK(scores > 0);
  }
}

TEST_CASE("Table 2 has the published parameters and storage of a hypernetwork", "[reports]") {
  testing::DataMaker make;
  const std::size_t trial = make.trial("hyperformer", 42, "cola",
                                       {{"backbone", "t5-base"},
                                        {"module_kind", "hyperformer++"},
                                        {"module_bottleneck", std::int64_t{24}},
                                        {"module_hyper_embedding", std::int64_t{64}},
                                        {"module_hyper_hidden", std::int64_t{128}},
                                        {"module_hyper_projected", std::int64_t{64}},
                                        {"bls_bits", 32 * 5163440.0}});
  make.data.trials[trial].tasks = {"cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte"};
  make.score(trial, "matthews", 0.5);
  const testing::MadeTable table =
      testing::table_of(builtin_report("table2"), make.data, published_numbers());
  int found = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row].key != "multi-task hypernetwork hyperformer++") continue;
    for (std::size_t column = 0; column < 2; ++column) {
      const Cell& cell = table.cells[row][column];
      INFO(table.columns[column].key);
      REQUIRE(cell.measured.mean);
      CHECK(*cell.measured.mean == Approx(100 * 5163440.0 / 222903552 / 8));
      CHECK(cell.published.number == 0.29);
      ++found;
    }
  }
  CHECK(found == 2);
}

TEST_CASE("Table 12 shows the trials' sizes next to the published ones", "[reports]") {
  const testing::MadeTable table =
      testing::table_of(builtin_report("table12"), ablation(), published_numbers());
  for (std::size_t row = 0; row < 3; ++row) {
    for (const Cell& cell : table.cells[row]) {
      INFO(table.rows[row].key);
      CHECK(cell.measured.kind == Cell::Kind::text);
      CHECK(cell.measured.text == cell.published.text);
    }
  }
  CHECK(table.cells[3][0].published.number == 0.11);
  CHECK(*table.cells[3][0].measured.mean == Approx(100 * 2.0 * 64 * 768 / 124645632));
}

TEST_CASE("Table 4 takes the Ro-En adapter's BLEU and storage from a separate sweep", "[reports]") {
  Dataset data = ablation();
  testing::DataMaker make;
  make.data = data;
  const std::size_t trial = make.trial("any", 42, "ro-en",
                                       {{"backbone", "t5-base"},
                                        {"module_kind", "adapter"},
                                        {"module_share", std::int64_t{1}},
                                        {"module_mask", "learned"},
                                        {"module_sparsity_ratio", 0.5},
                                        {"module_bottleneck", std::int64_t{384}}});
  make.data.trials[trial].sweep = "table4-ro-en";
  make.data.trials[trial].fields["sweep"] = std::string("table4-ro-en");
  make.data.trials[trial].fields["bls_bits"] = 33067008.0;
  make.score(trial, "bleu", 32.0);
  const auto table = testing::table_of(builtin_report("table4"), make.data, published_numbers());
  const std::vector<Cell>& ro_en = table.cells.at(3);
  CHECK(table.rows[3].key == "Ro-En adapter");
  CHECK(*ro_en[0].measured.mean == 32.0);
  CHECK(*ro_en[0].difference() == Approx(-0.63));
  CHECK(*ro_en[5].measured.mean == Approx(0.46358).epsilon(0.0001));
  CHECK(table.cells[0][0].measured.n() == 1);
}

TEST_CASE("Table 10 shows the trials' settings next to the published ones", "[reports]") {
  testing::DataMaker make;
  const auto add = [&](const std::string& sweep, const std::string& task, std::int64_t batch,
                       std::int64_t steps, double rate, double decay, double hours) {
    const std::size_t trial = make.trial("any", 42, task,
                                         {{"backbone", "t5-base"},
                                          {"module_kind", "adapter"},
                                          {"module_mask", "learned"},
                                          {"train_seconds", 3600 * hours},
                                          {"training_batch_size", batch},
                                          {"training_steps", steps},
                                          {"training_learning_rate", rate},
                                          {"training_mask_learning_rate", 10 * rate},
                                          {"training_label_smoothing", 0.1},
                                          {"training_weight_decay", decay}});
    make.data.trials[trial].sweep = sweep;
    make.data.trials[trial].fields["sweep"] = sweep;
    make.score(trial, "bleu", 1);
  };
  add("table14", "xsum", 64, 100000, 1e-4, 0.01, 24);
  add("table15", "wmt16-ro-en", 64, 60000, 3e-4, 0.01, 6);
  add("table16", "cola", 128, 20000, 3e-4, 0.0, 2);
  const auto table = testing::table_of(builtin_report("table10"), make.data, published_numbers());
  REQUIRE(table.rows.size() == 9);
  REQUIRE(table.columns.size() == 3);
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cells[row][column];
      INFO(table.rows[row].key << ", " << table.columns[column].key);
      REQUIRE(cell.measured.mean);
      REQUIRE(cell.published.number);
      CHECK(*cell.measured.mean == Approx(*cell.published.number));
    }
  }
  for (const Cell& cell : table.cells[6]) {  // the schedule
    CHECK(cell.measured.text == cell.published.text);
  }
  CHECK(table.cells[7][0].measured.kind == Cell::Kind::missing);  // one task needs no sampling
  CHECK(table.cells[7][2].measured.text == "10");
  CHECK(table.cells[7][2].published.number == 10);
  const std::pair<double, const char*> hours[] = {{24, "1 day"}, {6, "6 hours"}, {2, "2 hours"}};
  for (std::size_t column = 0; column < 3; ++column) {
    const Cell& cell = table.cells[8][column];
    REQUIRE(cell.measured.mean);
    CHECK(*cell.measured.mean == Approx(hours[column].first));
    CHECK(cell.published.text == hours[column].second);
  }
}

TEST_CASE("The error about an unknown report lists the known ones and the nearest", "[reports]") {
  CHECK_THROWS_WITH(
      builtin_report("quikstart"),
      petlab::testing::has_text("there is no report 'quikstart'; did you mean quickstart? "
                                "(known: figure3, figure4, minilm-glue, quickstart"));
}

}  // namespace
}  // namespace petlab::reports
