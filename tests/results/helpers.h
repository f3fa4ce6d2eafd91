#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "results/attempt_events.h"
#include "results/query.h"
#include "results/store.h"
#include "sweeps/catalog.h"

namespace petlab::results {

inline TrialRow trial_row(const std::string& id, std::uint64_t seed = 42) {
  sweeps::TrialConfig config = sweeps::default_config("adapter");
  config.backbone = "minilm";
  config.tasks = {"cola"};
  config.seed.value = seed;
  return {id, sweeps::to_json(config).dump(), "sha256:b", 1000.0, 1024};
}

/// A claim of a new trial.
inline NewAttempt request(const std::string& trial_id) {
  NewAttempt attempt;
  attempt.trial_id = trial_id;
  attempt.sweep = "s";
  attempt.owner = "me";
  attempt.host = "here";
  attempt.boot_id = "boot";
  attempt.pid_namespace = "pid:[1]";
  attempt.device = "cpu:0";
  attempt.launcher = "local";
  attempt.commit = "0.1.0";
  attempt.time = 5;
  return attempt;
}

/// `count` metrics "loss" at seq first, first + 1, …; the value is base + seq.
inline void append_losses(Batch& batch, const AttemptRef& attempt, std::int64_t count,
                          double base = 0, std::int64_t first = 1) {
  std::vector<MetricReport> all;
  const Series loss = series_in(batch, "train", "cola", "loss");
  for (std::int64_t seq = first; seq < first + count; ++seq) {
    all.push_back({seq, seq * 10, loss, base + static_cast<double>(seq)});
  }
  append_metrics(batch, attempt, all);
}

/// Each row as `a|b|c`.
inline std::vector<std::string> rows(const std::filesystem::path& file, const std::string& sql) {
  std::vector<std::string> lines;
  for (const auto& row : query(file, sql).rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += '|';
      if (const auto* integer = std::get_if<std::int64_t>(&row[i])) {
        line += std::to_string(*integer);
      } else if (const auto* real = std::get_if<double>(&row[i])) {
        line += nlohmann::json(*real).dump();
      } else if (const auto* text = std::get_if<std::string>(&row[i])) {
        line += *text;
      } else {
        line += "NULL";
      }
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace petlab::results
