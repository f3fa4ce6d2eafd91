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
#include "results/query.h"

namespace petlab::reports {

using Fields = std::map<std::string, results::Value>;

/// A trial as a member of a sweep, whether it has results or not.
struct Trial {
  std::string sweep;
  std::string variant;
  std::string id;
  std::string state;  // a word of sweeps/trial_state.h
  std::int64_t seed = 0;
  std::vector<std::string> tasks;
  std::vector<std::string> other_tasks;  ///< of its scores, that no trial names
  std::vector<std::string> tags;         ///< its own and its sweeps', where a report asks
  bool stale = false;
  std::string numerics;  // of the attempt that counts; empty: none
  /// Its fields, by the names of words (results/words.h): those that trials of its configuration
  /// have in common (module_kind, user.KEY, …), which may be nullptr, and its own (bls_bits, …, the
  /// members above included). field_of() looks in both.
  std::shared_ptr<const Fields> common;
  Fields fields;
  std::vector<results::AttemptFacts> attempts;  // by number
  /// What its worker said of the attempt that counts; nullptr: nothing, or nobody wants to know.
  std::shared_ptr<const results::Examples> examples = nullptr;
  /// Trials of one dataset with the same number have the same configuration, but for seeds; 0 says
  /// nothing.
  std::size_t configuration = 0;
};

/// Whether a trial of that state has its numbers: also one that another sweep finished, or that is
/// stale.
inline bool has_result(std::string_view state) {
  return state == "done" || state == "cached" || state == "stale";
}

/// What a value is of.
struct Series {
  std::string split;
  std::string task;
  std::string name;
};

/// A metric's value of a trial.
struct Score {
  std::size_t trial = 0;  // index into Dataset::trials
  std::int64_t step = 0;
  std::shared_ptr<const Series> series;  // never null; one of many scores
  std::optional<double> value;           // absent: undefined
  bool counts = true;                    // as results::Score::counts
};

/// What a report is computed from. Trials stand in the order of the sweep; the scores of one trial
/// and series in that in which they were reported.
struct Dataset {
  std::vector<Trial> trials;
  std::vector<Score> scores;
  /// The fields of trials that come from its configuration (module_kind, training_epochs,
  /// …): trials that differ in one of them, seed and task apart, are different experiments.
  std::set<std::string> configuration;
  /// For some fields (task, name, split, state, module_kind) all words that they can hold, whether
  /// a trial or score here has them or not: selecting by them is no mistake, by any other is one.
  std::map<std::string, std::set<std::string>> known_words;
  std::vector<std::string> builds;  // builds_of()
};

}  // namespace petlab::reports
