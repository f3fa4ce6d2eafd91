#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "results/store.h"
#include "sweeps/catalog.h"
#include "tests/support/temp_dir.h"

namespace petlab::questions {

/// A database with one sweep, filled trial by trial.
class SmallDatabase {
 public:
  SmallDatabase() : store_(file()) {}

  std::filesystem::path file() const { return folder_.path() / "petlab.db"; }

  static sweeps::TrialConfig config(const std::string& task, std::uint64_t seed,
                                    std::int64_t bottleneck = 16) {
    sweeps::TrialConfig trial = sweeps::default_config("adapter");
    trial.backbone = "minilm";
    trial.tasks = {task};
    trial.seed.value = seed;
    trial.module.bottleneck = bottleneck;
    return trial;
  }

  /// A trial of the sweep without a result; its id is "t1", "t2", ….
  std::string add(const std::string& variant, const sweeps::TrialConfig& config) {
    const std::string id = "t" + std::to_string(rows_.size() + 1);
    rows_.push_back({id, sweeps::to_json(config).dump(), "sha256:b", 1000.0, 1024});
    sweep_.members.push_back({id, variant});
    results::Batch batch = store_.begin();
    batch.record_sweep(sweep_, rows_, 1);
    batch.commit();
    return id;
  }

  /// The sweep's rule stops the trial.
  void stop_early(const std::string& id) {
    results::Batch batch = store_.begin();
    results::stop_early(batch, id, {1, 2, "the rule's numbers", 3});
    batch.commit();
  }

  void resume_stopped(const std::string& id) {
    results::Batch batch = store_.begin();
    results::set_cancelled(batch, id, false);
    batch.commit();
  }

  struct Metric {
    std::int64_t step;
    std::string split, task, name;
    std::optional<double> value;
  };
  /// Adds an attempt of the trial that finished with these metrics.
  void finish(const std::string& id, const std::vector<Metric>& metrics) {
    results::Batch batch = store_.begin();
    results::NewAttempt wanted;
    wanted.trial_id = id;
    wanted.host = "here";
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    results::record_started(batch, attempt, {}, 1);
    std::vector<results::MetricReport> rows;
    for (const Metric& metric : metrics) {
      rows.push_back({static_cast<std::int64_t>(rows.size()) + 1, metric.step,
                      results::series_in(batch, metric.split, metric.task, metric.name),
                      metric.value});
    }
    results::append_metrics(batch, attempt, rows);
    protocol::Finished finished;
    finished.step = 9;
    finished.artifact = "artifact.petl";
    finished.train_seconds = 1.5;
    results::record_finished(batch, attempt, finished, 2);
    batch.commit();
  }
  /// A finished trial with one test score.
  std::string scored(const std::string& variant, const sweeps::TrialConfig& config,
                     std::optional<double> value, const std::string& name = "accuracy") {
    const std::string id = add(variant, config);
    finish(id, {{9, "test", config.tasks.front(), name, value}});
    return id;
  }

 private:
  testing::TempDir folder_;
  results::Store store_;
  results::SweepRow sweep_{"s", "", "", "", {}};
  std::vector<results::TrialRow> rows_;
};

}  // namespace petlab::questions
