#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/live/live_view.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {

/// What the trials of a run came to that finished last: of each of their tasks the primary metric
/// on the test data, or where there is none on the validation data.
class LastResults {
 public:
  static constexpr std::size_t kMost = 5;

  /// The sweep must outlive it.
  LastResults(std::filesystem::path database, const sweeps::Sweep& sweep)
      : database_(std::move(database)), sweep_(sweep) {}

  /// A trial has finished, and the database has its result.
  void add(const std::string& trial_id);
  /// The last of them, the newest at the end. Reads the scores of those that are new: however many
  /// finished meanwhile, at most kMost.
  const std::vector<LiveResult>& look();

 private:
  LiveResult read(const std::string& trial_id) const;
  std::filesystem::path database_;
  const sweeps::Sweep& sweep_;
  std::deque<std::string> new_;
  std::vector<LiveResult> last_;
};

}  // namespace petlab::cli
