#include "results/store.h"

#include <nlohmann/json.hpp>

#include "results/query.h"
#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;

std::string config_text(std::uint64_t seed) {
  sweeps::TrialConfig config = sweeps::default_config("adapter");
  config.backbone = "minilm";
  config.tasks = {"cola"};
  config.seed.value = seed;
  return sweeps::to_json(config).dump();
}

TrialRow trial(const std::string& id, std::uint64_t seed = 42) {
  return {id, config_text(seed), "sha256:b", 1000.0, 1024};
}

NewAttempt request(const std::string& trial_id, std::int64_t after = 0) {
  NewAttempt attempt;
  attempt.trial_id = trial_id;
  attempt.after = after;
  attempt.sweep = "s";
  attempt.owner = "me";
  attempt.host = "here";
  attempt.time = 5;
  return attempt;
}

std::string text_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return nlohmann::json(*real).dump();
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "NULL";
}

std::vector<std::string> rows(const std::filesystem::path& file, const std::string& sql) {
  std::vector<std::string> lines;
  for (const auto& row : query(file, sql).rows) {
    std::string line;
    for (const Value& value : row) line += (line.empty() ? "" : "|") + text_of(value);
    lines.push_back(line);
  }
  return lines;
}

/// Finishes an attempt with `count` metrics "loss" at seq 1, 2, … whose value is base + seq.
void metrics(Batch& batch, const AttemptRef& attempt, std::int64_t count, double base) {
  std::vector<MetricRow> all;
  const Series loss = batch.series("train", "cola", "loss");
  for (std::int64_t seq = 1; seq <= count; ++seq) {
    all.push_back({seq, seq * 10, loss, base + static_cast<double>(seq)});
  }
  batch.append_metrics(attempt, all);
}

}  // namespace

TEST_CASE("results follow the finished attempt and its parents up to their checkpoints",
          "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  Store store(file);
  Batch batch = store.begin();
  batch.record_sweep({"s", "about", "s.yaml", "sha256:s", {{"t1", "vanilla"}}}, {{trial("t1")}}, 1);
  const auto first = std::get<AttemptRef>(batch.begin_attempt(request("t1")));
  metrics(batch, first, 5, 100);
  batch.record_ending(first, {Outcome::crashed, "signal 9", {}, 9, "last words", 6});
  NewAttempt resumed = request("t1", 1);
  resumed.resume = sweeps::Resume{1, 20, 2, "../1/checkpoint/x"};
  const auto second = std::get<AttemptRef>(batch.begin_attempt(resumed));
  CHECK(second.number == 2);
  metrics(batch, second, 2, 200);
  CHECK(batch.serial() > store.last_committed());
  batch.commit();
  CHECK(rows(file, "SELECT * FROM results").empty());

  Batch end = store.begin();
  end.record_finished(second, {50, "artifact.petl", 900.0, 928, 12.0, 3.0}, 9);
  end.commit();
  CHECK(rows(file, "SELECT attempt, seq, value, bls_bits, stored_bits FROM results") ==
        std::vector<std::string>{"1|1|101.0|900.0|928", "1|2|102.0|900.0|928",
                                 "2|1|201.0|900.0|928", "2|2|202.0|900.0|928"});
  CHECK(rows(file,
             "SELECT DISTINCT sweep, variant, seed, backbone, tasks, module_kind, "
             "module_share, module_mask, module_bottleneck, module_rank FROM sweep_results") ==
        std::vector<std::string>{"s|vanilla|42|minilm|cola|adapter|0|none|64|NULL"});
}

}  // namespace petlab::results
