// Creates a database like that of a large finished sweep, for bench/answers.sh: every trial has a
// training loss per step, validation scores after each of three epochs, and test scores of the best
// epoch. The numbers come from a generator with a fixed seed.
//   make_database FILE [--trials N] [--metrics N]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "base/sha256.h"
#include "results/attempt_events.h"
#include "results/store.h"
#include "sweeps/catalog.h"

namespace {

using namespace petlab;

constexpr int kGroup = 1000;  // trials per transaction
constexpr std::array kTasks = {"cola", "mrpc", "rte", "sst2"};
constexpr std::array kVariants = {"vanilla", "propetl", "random", "only_share", "only_mask"};
constexpr int kSeeds = 5;

sweeps::TrialConfig config_of(std::size_t variant, std::int64_t at) {
  sweeps::TrialConfig config = sweeps::default_config("adapter");
  config.backbone = "minilm";
  config.module.share = variant != 0 && variant != 4;
  config.module.mask = variant == 1 || variant == 4 ? metrics::MaskKind::learned
                       : variant == 2               ? metrics::MaskKind::random
                                                    : metrics::MaskKind::none;
  config.seed.value = static_cast<std::uint64_t>(42 + at % kSeeds);
  at /= kSeeds;
  config.tasks = {kTasks[static_cast<std::size_t>(at) % kTasks.size()]};
  at /= static_cast<std::int64_t>(kTasks.size());
  config.module.bottleneck = std::int64_t{8} << (at % 4);
  config.training.learning_rate = 1e-4 * static_cast<double>(1 + at / 4);
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  int trials = 10'000;
  int metrics = 20;
  CLI::App app("Makes a database as a large sweep leaves it");
  app.add_option("FILE", file, "the database, which must not be there")->required();
  app.add_option("--trials", trials, "trials of the sweep");
  app.add_option("--metrics", metrics, "rows of metrics a trial")->check(CLI::Range(10, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  if (std::filesystem::exists(file)) {
    std::fprintf(stderr, "%s is there already\n", file.c_str());
    return 2;
  }

  results::Store store(file, {.synced = false});
  results::SweepRow sweep{"large", "a sweep to ask questions of", "large.yaml", "", {}};
  std::vector<results::TrialRow> rows;
  std::vector<std::string> tasks;
  for (int i = 0; i < trials; ++i) {
    const std::size_t variant = static_cast<std::size_t>(i) % kVariants.size();
    const sweeps::TrialConfig config = config_of(variant, i / static_cast<int>(kVariants.size()));
    const std::string text = sweeps::to_json(config).dump();
    const std::string id = base::sha256(text).substr(7, 16);
    rows.push_back({id, text, "sha256:b", 35328.0, 35328});
    sweep.members.push_back({id, kVariants[variant]});
    tasks.push_back(config.tasks.front());
  }
  {
    results::Batch batch = store.begin();
    batch.record_sweep(sweep, rows, 1);
    batch.commit();
  }
  std::mt19937 random(1);
  const auto draw = [&] { return static_cast<double>(random() % 1000) / 1000; };
  protocol::Started started;
  started.worker = "petlab-trainer";
  started.version = "0.1.0";
  started.numerics = R"({"version":"2","device":"cpu","threads":1,"layout":"packed","gang":1})";
  for (std::size_t at = 0; at < rows.size();) {
    results::Batch batch = store.begin();
    for (int i = 0; i < kGroup && at < rows.size(); ++i, ++at) {
      results::NewAttempt wanted;
      wanted.trial_id = rows[at].trial_id;
      wanted.sweep = sweep.name;
      wanted.owner = "bench";
      wanted.host = "here";
      wanted.device = "cpu:0";
      wanted.launcher = "local";
      wanted.time = static_cast<double>(at);
      const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
      results::record_started(batch, attempt, started, wanted.time);
      std::vector<results::MetricReport> events;
      std::int64_t seq = 0;
      const auto add = [&](std::int64_t step, const char* split, const char* name, double value) {
        events.push_back({++seq, step, results::series_in(batch, split, tasks[at], name), value});
      };
      const int steps = metrics - 8;
      const double level = 0.5 + 0.05 * static_cast<double>(at % kVariants.size()) + 0.05 * draw();
      for (int step = 1; step <= steps; ++step) {
        add(step, "train", "loss", 1 / std::sqrt(step) + 0.1 * draw());
        if (step % std::max(1, steps / 3) == 0 && step / std::max(1, steps / 3) <= 3) {
          add(step, "validation", "accuracy", level + 0.01 * step / steps);
          add(step, "validation", "f1", level - 0.02);
        }
      }
      add(steps, "test", "accuracy", level);
      add(steps, "test", "f1", level - 0.03);
      results::append_metrics(batch, attempt, events);
      protocol::Finished finished;
      finished.step = steps;
      finished.artifact = "artifact.petl";
      finished.bls_bits = 35328;
      finished.stored_bits = 35328;
      finished.train_seconds = 60 + draw();
      results::record_finished(batch, attempt, finished, wanted.time + 60);
      results::set_cursor(batch, attempt, {100, seq + 2, seq + 2, true, false});
    }
    batch.commit();
  }
}
