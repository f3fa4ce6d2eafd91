#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "results/attempt.h"
#include "results/code.h"
#include "results/query.h"

namespace petlab::reports {

using Fields = std::map<std::string, results::Value>;

/// A trial as a member of a sweep, with or without results.
struct Trial {
  std::string sweep;
  std::string variant;
  std::string id;
  std::string state;  // a name of sweeps/trial_state.h
  std::int64_t seed = 0;
  std::vector<std::string> tasks;
  std::vector<std::string> other_tasks;  ///< tasks of its scores that no trial lists
  std::vector<std::string> tags;         ///< its own tags and its sweeps', if a report uses them
  bool stale = false;
  std::string numerics;  // of the attempt that counts; empty if there is none
  /// What the attempts that count ran; empty: unknown.
  std::vector<std::shared_ptr<const results::RanCode>> code = {};
  /// Its fields by the names of words (results/words.h): `common` has those that all trials of its
  /// configuration share (module_kind, user.KEY, …) and may be nullptr; `fields` has the trial's
  /// own (bls_bits, …, including the members above). field_of() looks in both.
  std::shared_ptr<const Fields> common;
  Fields fields;
  std::vector<results::AttemptFacts> attempts;  // by number
  /// Example counts reported for the attempt that counts; nullptr if none, or if not requested.
  std::shared_ptr<const results::Examples> examples = nullptr;
  /// Trials of one dataset with the same number have the same configuration, except for seeds. 0
  /// means unknown.
  std::size_t configuration = 0;
};

/// True if a trial in that state has results, including cached and stale ones.
inline bool has_result(std::string_view state) {
  return state == "done" || state == "cached" || state == "stale";
}

/// The series that a value belongs to.
struct Series {
  std::string split;
  std::string task;
  std::string name;
};

/// A trial's value of a metric.
struct Score {
  std::size_t trial = 0;  // index into Dataset::trials
  std::int64_t step = 0;
  std::shared_ptr<const Series> series;  // never null; shared by many scores
  std::optional<double> value;           // absent: undefined
  bool counts = true;                    // as results::Score::counts
};

/// The data of a report. Trials are in the order of the sweep; the scores of one trial and series
/// in the order in which they were reported.
struct Dataset {
  std::vector<Trial> trials;
  std::vector<Score> scores;
  /// The trial fields that come from the configuration (module_kind, training_epochs, …): trials
  /// that differ in one of them, except seed and task, are different experiments.
  std::set<std::string> configuration;
  /// For some fields (task, name, split, state, module_kind), all possible words, whether or not a
  /// trial or score has them. Selecting by any other word is an error.
  std::map<std::string, std::set<std::string>> known_words;
  std::vector<std::string> builds;  // builds_of()
};

}  // namespace petlab::reports
