#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/run.h"
#include "results/store.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// A file of the program: suggest.py.
struct SearchScript {
  std::string_view name;
  std::string_view content;
};
std::span<const SearchScript> search_scripts();

/// The rounds of a run. A sweep has one, unless it has a search by TPE. Its first round has the
/// points that are known. When the trials of a round are over, Optuna's sampler suggests the points
/// of the next one from all results. They are recorded in the runs folder, synced, and then added
/// to the sweep.
///
/// A round depends on the search, its seed, the results so far and Optuna's version. So a run that
/// was killed suggests the same points when it is resumed.
class SearchRounds {
 public:
  /// `sweep` grows by the points of each round. It, the loop, the store and the observer must
  /// outlive this object.
  SearchRounds(EventLoop& loop, const results::Store& store, sweeps::Sweep& sweep,
               const sweeps::Locations& locations, std::filesystem::path runs,
               RunObserver& observer);

  /// True if there is a round to run. The first call only checks that Optuna is installed if points
  /// are to come. `result` is that of the former round. It gets the problem if there is one,
  /// whether the user interrupted the search, and whether points are missing.
  bool next(RunResult& result);
  /// True while next() waits for Optuna, which interrupt() ends. To be called from the loop.
  bool is_waiting() const { return waiting_; }
  void interrupt() { interrupted_ = true; }

  std::chrono::milliseconds limit = std::chrono::minutes(2);  ///< for Optuna's answer; see tests

 private:
  std::string ask(nlohmann::json request, std::size_t points);
  std::string extend();
  nlohmann::json told() const;

  EventLoop& loop_;
  const results::Store& store_;
  sweeps::Sweep& sweep_;
  const sweeps::Locations locations_;
  const std::filesystem::path runs_;
  RunObserver& observer_;
  sweeps::SuggestedPoints answer_;
  bool first_ = true;
  bool waiting_ = false;
  bool interrupted_ = false;
};

}  // namespace petlab::orchestrator
