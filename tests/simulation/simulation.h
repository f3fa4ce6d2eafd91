#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "results/query.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::testing {

constexpr std::size_t kMostTrials = 6;
constexpr std::size_t kMostOrchestrators = 5;

/// The kinds of disturbances; each seed leaves some out.
const std::vector<std::string>& disturbances();

/// What to simulate. Everything else follows from the seed.
struct Plan {
  std::uint64_t seed = 1;
  std::size_t trials = 0;         // 0: by the seed
  std::size_t orchestrators = 0;  // 0: by the seed
  std::set<std::string> without;  // disturbances
};

/// What happened in all seeds.
struct Tally {
  double hours = 0;
  std::map<std::string, std::int64_t> counts;

  std::int64_t operator[](const char* what) const;
  void add(const Tally& other);
};

/// The sweeps of one to six trials, with and without a rule that stops some early, and the results
/// of an undisturbed run of the largest.
class SimulatedSweeps {
 public:
  /// `folder` is created.
  explicit SimulatedSweeps(const std::filesystem::path& folder);

  const sweeps::Sweep& of(std::size_t trials, bool with_rule = false) const {
    return sweeps_.at(trials - 1 + (with_rule ? kMostTrials : 0));
  }
  const sweeps::Locations& locations() const { return locations_; }
  /// An empty database: creating one takes longer than most seeds.
  const std::filesystem::path& empty() const { return empty_; }
  /// trial_id, step, split, task, name and value; empty during the undisturbed run.
  const std::vector<std::vector<results::Value>>& undisturbed() const { return undisturbed_; }

 private:
  sweeps::Locations locations_;
  std::filesystem::path empty_;
  std::vector<sweeps::Sweep> sweeps_;
  std::vector<std::vector<results::Value>> undisturbed_;
};

/// How a seed went.
struct Story {
  std::string fault;  // what must never be; empty: nothing
  std::string lines;  // the last ones
};

/// Simulates one seed in a new folder, which is removed.
Story simulate(const Plan& plan, const SimulatedSweeps& sweeps, const std::filesystem::path& folder,
               Tally& tally);

}  // namespace petlab::testing
