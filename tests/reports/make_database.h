#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/load.h"
#include "results/attempt_events.h"
#include "results/store.h"

namespace petlab::testing {

/// A trial for make_database, with its results.
struct MadeTrial {
  std::string id = {};
  std::string variant = {};
  std::int64_t seed = 1;
  std::string task = "cola";
  std::map<std::string, std::optional<double>> scores = {};  // test split; empty: no attempt
  std::string numerics = "1";
  std::string data_digest = "sha256:d";
  double time = 10;  // of the attempt
  results::Outcome outcome = results::Outcome::finished;
  results::Examples examples = {};
};

inline std::string config_of(const MadeTrial& trial) {
  return nlohmann::ordered_json{
      {"backbone", "minilm"},
      {"task", trial.task},
      {"seed", trial.seed},
      {"module", {{"kind", "adapter"}, {"share", false}, {"mask", "none"}, {"bottleneck", 16}}},
      {"training", {{"epochs", 3}, {"learning_rate", 1e-3}}},
      {"user", {{"note", "x"}}}}
      .dump();
}

/// Records sweep `name` with its trials in a database as an orchestrator would.
inline void make_database(const std::filesystem::path& file, const std::string& name,
                          const std::vector<MadeTrial>& trials) {
  results::Store store(file);
  results::Batch batch = store.begin();
  results::SweepRow sweep{name, "about it", name + ".yaml", "sha256:s", {}};
  std::vector<results::TrialRow> rows;
  for (const MadeTrial& trial : trials) {
    sweep.members.push_back({trial.id, trial.variant});
    rows.push_back({trial.id, config_of(trial), "sha256:b", 3200.0, 3200});
  }
  batch.record_sweep(sweep, rows, 1);
  for (const MadeTrial& trial : trials) {
    if (trial.scores.empty() && trial.outcome == results::Outcome::finished) continue;
    results::NewAttempt wanted;
    wanted.trial_id = trial.id;
    wanted.sweep = name;
    wanted.owner = "test";
    wanted.time = trial.time;
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    protocol::Started started;
    started.worker = "petlab-trainer";
    started.numerics = R"({"version":")" + trial.numerics + R"("})";
    started.data_digests = {{trial.task, trial.data_digest}};
    results::record_started(batch, attempt, started, trial.time);
    std::vector<results::MetricReport> metrics;
    for (const auto& [score, value] : trial.scores) {
      metrics.push_back({static_cast<std::int64_t>(metrics.size()) + 1, 30,
                         results::series_in(batch, "test", trial.task, score), value});
    }
    results::append_metrics(batch, attempt, metrics);
    results::set_cursor(batch, attempt,
                        {100, static_cast<std::int64_t>(metrics.size()) + 2, 9, true});
    if (trial.outcome == results::Outcome::finished) {
      protocol::Finished finished;
      finished.step = 30;
      finished.bls_bits = 6400.0;
      finished.train_seconds = 12.5;
      finished.examples = trial.examples;
      results::record_finished(batch, attempt, finished, trial.time + 1);
    } else if (trial.outcome == results::Outcome::failed) {
      results::record_failed(batch, attempt, {"no good", "error"}, trial.time + 1);
    } else if (trial.outcome != results::Outcome::open) {
      batch.record_ending(attempt, {trial.outcome, "gone", {}, 9, "", trial.time + 1});
    }
  }
  batch.commit();
}

inline bool assume_alive(const results::AttemptFacts&) { return true; }

/// Loads everything that a report with this selection can show. Each metric has the value that
/// counts, or with `every_step` those of all steps.
inline reports::Dataset loaded(const std::filesystem::path& file,
                               const std::vector<std::string>& sweeps,
                               const reports::Selection& where, bool every_step = false) {
  return reports::load_dataset(results::Reader(file), sweeps, reports::wanted_by(where, every_step),
                               assume_alive);
}

}  // namespace petlab::testing
