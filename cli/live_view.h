#pragma once

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

/// What `petlab run` and `petlab status` show of a sweep that goes on.
struct LivePicture {
  std::vector<orchestrator::RunningTrial> running;
  std::vector<LiveFailure> failures;  // the last one is the newest
  std::vector<std::string> summary;   // "12 of 30 done, 2 running, …"; a line a sweep
};

/// The picture as lines for a terminal of that size: a row for each trial that runs, the newest
/// failures with the last lines of their logs, the summary. What has no room is counted: columns go
/// from the least important one, then rows and log lines. No line is wider than `width`, and there
/// are no more than `height`. With height 0, for what stays when all is over, there is any number
/// of lines, and reasons and log lines are whole. Text of users and workers is made printable.
std::vector<std::string> draw(const LivePicture& picture, int width, int height);

}  // namespace petlab::cli
