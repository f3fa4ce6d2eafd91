#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/running/run.h"

namespace petlab::cli {

/// A trial that failed, or that is retried after a failed attempt.
struct LiveFailure {
  std::string trial_id;
  std::string state;  // "failed", "interrupted"
  std::string reason;
  std::string last_lines;  // of the worker's log
};

/// A trial that has finished.
struct LiveResult {
  struct Score {
    std::string task;
    std::string metric;
    std::optional<double> value;  // absent: undefined
    bool operator==(const Score&) const = default;
  };
  std::string trial_id;
  std::string variant;        // several are joined by ", "; may be empty
  std::vector<Score> scores;  // by task
  bool operator==(const LiveResult&) const = default;
};

/// The progress of a sweep.
struct LiveShare {
  std::string sweep;
  std::int64_t total = 0;
  std::int64_t done = 0;
  std::int64_t over = 0;  // done, failed, cancelled or stopped early
  std::optional<double> seconds_left;
};

/// The view of a running sweep, for `petlab run` and `petlab status`.
struct LivePicture {
  std::vector<orchestrator::RunningTrial> running;
  std::vector<LiveFailure> failures;  // newest last
  std::vector<std::string> summary;   // one line per sweep, such as "12 of 30 done, 2 running, …"
  std::vector<LiveResult> results;    // newest last
  std::optional<LiveShare> share;     // shown as a bar
  bool colour = false;  // for states and the bar; words and signs carry the same information
};

/// Lays the picture out as lines for a terminal: a row for each running trial, the latest results,
/// the newest failures with the last lines of their logs, a bar, and the summary. If space is
/// short, the least important columns are dropped, then results, rows and log lines, with a count
/// of the hidden items; small terminals get no bar. No line is wider than `width`, and there are at
/// most `height` lines. Height 0, for the final picture, means no limit, with full reasons and log
/// lines. Text of users and workers is made printable; colours are the only escape sequences.
std::vector<std::string> draw(const LivePicture& picture, int width, int height);

}  // namespace petlab::cli
