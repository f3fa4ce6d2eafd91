#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/live/live_view.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {

/// The results of the trials of a run that finished last: each task's primary metric on the test
/// data, or on the validation data if it has no test scores.
class LastResults {
 public:
  static constexpr std::size_t kMost = 5;

  /// The sweep must outlive it.
  LastResults(std::filesystem::path database, const sweeps::Sweep& sweep)
      : database_(std::move(database)), sweep_(sweep) {}

  /// Call when a trial has finished and its result is in the database.
  void add(const std::string& trial_id);
  /// The latest results, newest last. Reads the scores of new trials only, at most kMost.
  const std::vector<LiveResult>& look();

 private:
  LiveResult read(const std::string& trial_id) const;
  std::filesystem::path database_;
  const sweeps::Sweep& sweep_;
  std::deque<std::string> new_;
  std::vector<LiveResult> last_;
};

}  // namespace petlab::cli
