// Measures rows per second of the whole ingest: reads, parses, checks and stores the events.jsonl
// of an attempt and commits to disk (synchronous=FULL). Prints one JSON line.
//   ingest_bench [--rows N] [--attempts N] [--rounds N] [--folder DIR]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orchestrator/records/ingest.h"
#include "protocol/events.h"
#include "protocol/trial_directory.h"
#include "results/query.h"
#include "results/store.h"

namespace {

using namespace petlab;

constexpr std::int64_t kRowsAtOnce = 100'000;

std::string trial_id(int number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016d", number);
  return text;
}

/// Writes the events of a worker that reports two training values per step.
void write_events(const std::filesystem::path& file, std::int64_t rows) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  std::int64_t seq = 0;
  double time = 1763719286.125;
  const auto put = [&](auto body) {
    out << protocol::to_line({seq++, time += 0.001, std::move(body)}) << '\n';
  };
  put(protocol::Started{1, "bench", "1", R"({"version":"1"})", "", {}});
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t step = row / 2 + 1;
    const double value = 0.7 / (1.0 + 0.001 * static_cast<double>(row));
    put(protocol::Metric{step, "train", "movie-polarity", row % 2 == 0 ? "loss" : "learning_rate",
                         value});
  }
  put(protocol::Finished{rows / 2, "", {}, {}, {}, {}});
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t rows = 1'000'000;
  int attempts = 1;
  int rounds = 3;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  CLI::App app("Rows a second of the whole ingest, events file to commit");
  app.add_option("--rows", rows, "metric rows in all");
  app.add_option("--attempts", attempts, "attempts that they are spread over");
  app.add_option("--rounds", rounds, "how often");
  app.add_option("--folder", folder, "a folder on the disk to be measured");
  CLI11_PARSE(app, argc, argv);

  const std::filesystem::path here = folder / "petlab-ingest-bench";
  std::filesystem::remove_all(here);
  const std::filesystem::path runs = here / "runs";
  for (int i = 1; i <= attempts; ++i) {
    write_events(protocol::TrialDirectory(runs, trial_id(i), 1).events(), rows / attempts);
  }
  std::vector<double> rates;
  double query_seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::filesystem::path file = here / ("petlab-" + std::to_string(round) + ".db");
    results::Store store(file);
    std::vector<results::AttemptRef> refs;
    results::Batch batch = store.begin();
    for (int i = 1; i <= attempts; ++i) {
      batch.record_trial({trial_id(i), R"({"seed":1})", "", {}, {}});
      results::NewAttempt attempt;
      attempt.trial_id = trial_id(i);
      refs.push_back(std::get<results::AttemptRef>(batch.begin_attempt(attempt)));
    }
    batch.commit();
    orchestrator::Ingest ingest(store, runs);
    const auto began = std::chrono::steady_clock::now();
    std::int64_t stored = 0;
    for (std::size_t next = 0; next < refs.size();) {
      // The orchestrator, too, commits the events of many attempts in one transaction.
      results::Batch group = store.begin();
      for (std::int64_t in_group = 0; next < refs.size() && in_group < kRowsAtOnce;) {
        const orchestrator::IngestUpdate update = ingest.read(group, refs[next]);
        in_group += update.metrics;
        if (!update.more) ++next;
      }
      group.commit();
    }
    const double seconds = seconds_since(began);
    for (const auto& row : results::query(file, "SELECT count(*) FROM metric_values").rows) {
      stored = std::get<std::int64_t>(row[0]);
    }
    rates.push_back(static_cast<double>(stored) / seconds);
    const auto asked = std::chrono::steady_clock::now();
    const auto answer = results::query(
        file, "SELECT count(*), avg(value) FROM results WHERE name = 'loss' AND split = 'train'");
    query_seconds = seconds_since(asked);
    if (std::get<std::int64_t>(answer.rows[0][0]) != (rows / attempts + 1) / 2 * attempts) {
      std::fprintf(stderr, "rows are missing\n");
      return 1;
    }
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%s\n", nlohmann::ordered_json({{"bench", "ingest"},
                                              {"rows", rows},
                                              {"attempts", attempts},
                                              {"rounds", rounds},
                                              {"rows_per_second", rates[rates.size() / 2]},
                                              {"range", {rates.front(), rates.back()}},
                                              {"query_over_all_rows_seconds", query_seconds}})
                          .dump()
                          .c_str());
  std::filesystem::remove_all(here);
}
