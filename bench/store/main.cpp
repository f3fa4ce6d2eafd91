// Measures the cost of a trial in the database alone, and whether it grows as trials accumulate.
// Each trial is claimed, started and finished, in transactions of --group trials. Prints one JSON
// line.
//   store_bench [--trials N] [--group N] [--folder DIR]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "results/attempt_events.h"
#include "results/query.h"
#include "results/store.h"
#include "sweeps/catalog.h"

namespace {

using namespace petlab;

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  int trials = 30'000;
  int group = 1;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  CLI::App app("What a trial costs in the database alone");
  app.add_option("--trials", trials, "trials of the sweep");
  app.add_option("--group", group, "trials a transaction");
  app.add_option("--folder", folder, "a folder on the disk to be measured");
  CLI11_PARSE(app, argc, argv);

  const std::filesystem::path here = folder / "petlab-store-bench";
  std::filesystem::remove_all(here);
  std::filesystem::create_directories(here);
  const std::filesystem::path file = here / "petlab.db";
  results::Store store(file);
  sweeps::TrialConfig config = sweeps::default_config("adapter");
  config.backbone = "minilm";
  config.tasks = {"cola"};
  results::SweepRow sweep{"bench", "", "", "", {}};
  std::vector<results::TrialRow> rows;
  std::vector<std::string> ids;
  for (int i = 0; i < trials; ++i) {
    config.seed.value = static_cast<std::uint64_t>(i);
    char id[17];
    std::snprintf(id, sizeof id, "%016x", static_cast<unsigned>(i) * 2654435761u);
    ids.emplace_back(id);
    rows.push_back({id, sweeps::to_json(config).dump(), "", {}, {}});
    sweep.members.push_back({id, ""});
  }
  const auto record = [&] {
    const double began = now_ms();
    results::Batch batch = store.begin();
    batch.record_sweep(sweep, rows, 1);
    batch.commit();
    return now_ms() - began;
  };
  const double first_record = record();
  const double second_record = record();
  std::vector<double> tenths;
  for (int tenth = 0; tenth < 10; ++tenth) {
    const int begin = trials / 10 * tenth;
    const int end = trials / 10 * (tenth + 1);
    const double began = now_ms();
    for (int at = begin; at < end;) {
      std::vector<results::AttemptRef> claimed;
      results::Batch claims = store.begin();
      for (int i = 0; i < group && at < end; ++i, ++at) {
        results::NewAttempt wanted;
        wanted.trial_id = ids[static_cast<std::size_t>(at)];
        claimed.push_back(std::get<results::AttemptRef>(claims.begin_attempt(wanted)));
      }
      claims.commit();
      results::Batch ends = store.begin();
      for (const results::AttemptRef& attempt : claimed) {
        results::record_started(ends, attempt, {}, 1);
        results::append_metrics(ends, attempt,
                                {{{1, 1, results::series_in(ends, "test", "cola", "f1"), 0.5}}});
        results::record_finished(ends, attempt, {}, 2);
        results::set_cursor(ends, attempt, {100, 3, 3, true, false});
      }
      ends.commit();
    }
    tenths.push_back((now_ms() - began) / (end - begin));
  }
  const double asked = now_ms();
  const auto facts = store.read().trial_facts(ids);
  const double facts_ms = now_ms() - asked;
  std::printf("%s\n", nlohmann::ordered_json({{"bench", "store"},
                                              {"trials", trials},
                                              {"group", group},
                                              {"record_sweep_ms", {first_record, second_record}},
                                              {"ms_per_trial_by_tenth", tenths},
                                              {"trial_facts_ms", facts_ms}})
                          .dump()
                          .c_str());
  std::filesystem::remove_all(here);
}
