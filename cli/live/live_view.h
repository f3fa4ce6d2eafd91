#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/running/run.h"

namespace petlab::cli {

/// A trial that failed, or whose last attempt did and is tried again.
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
  std::string variant;        // several joined by ", "; empty: none
  std::vector<Score> scores;  // by task
  bool operator==(const LiveResult&) const = default;
};

/// How much of a sweep is over.
struct LiveShare {
  std::string sweep;
  std::int64_t total = 0;
  std::int64_t done = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
  std::optional<double> seconds_left;
};

/// What `petlab run` and `petlab status` show of a sweep that goes on.
struct LivePicture {
  std::vector<orchestrator::RunningTrial> running;
  std::vector<LiveFailure> failures;  // the last one is the newest
  std::vector<std::string> summary;   // "12 of 30 done, 2 running, …"; a line a sweep
  std::vector<LiveResult> results;    // the last one is the newest
  std::optional<LiveShare> share;     // as a bar
  bool colour = false;                // states and the bar, which have words and signs all the same
};

/// The picture as lines for a terminal of that size: a row for each trial that runs, the last
/// results, the newest failures with the last lines of their logs, a bar, the summary. What has no
/// room is counted: columns go from the least important one, then results, rows and log lines. A
/// narrow or low terminal has no bar: the summary alone tells how far it is. No line is wider than
/// `width`, and there are no more than `height`. With height 0, for what stays when all is over,
/// there is any number of lines, and reasons and log lines are whole. Text of users and workers is
/// made printable; the only escape sequences are those of colours.
std::vector<std::string> draw(const LivePicture& picture, int width, int height);

}  // namespace petlab::cli
