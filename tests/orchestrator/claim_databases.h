#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "results/store.h"
#include "sweeps/catalog.h"
#include "tests/support/temp_dir.h"

namespace petlab::testing {

inline constexpr int kTrials = 2;

/// One transaction on the database.
struct Write {
  enum class What { claim, forget, stopped, finished, rerun, stop_early };
  What what = What::claim;
  int trial = 0;
  std::int64_t number = 0;  // claim: the lowest allowed number; otherwise: the attempt
  int owner = 0;
  std::int64_t planned_from = 0;
  auto operator<=>(const Write&) const = default;
};

/// The contents of a real database after a sequence of writes. Equal contents have equal numbers;
/// number 0 has the trials without attempts.
class Databases {
 public:
  Databases() { find_or_add({}); }

  const results::TrialFacts& facts(int state, int trial) const {
    return states_[state].facts[trial];
  }
  std::size_t size() const { return states_.size(); }

  struct Result {
    int state = 0;
    int number = 0;  // of the claimed attempt; 0: the claim was refused
  };
  Result after(int state, const Write& write) {
    const auto known = results_.find({state, write});
    if (known != results_.end()) return known->second;
    std::vector<Write> history = states_[state].history;
    history.push_back(write);
    const Result result = find_or_add(history);
    results_.emplace(std::pair(state, write), result);
    return result;
  }

 private:
  struct State {
    std::vector<Write> history;
    std::array<results::TrialFacts, kTrials> facts;
  };

  static std::string id(int trial) { return fmt::format("t{}", trial); }

  // Replays the history on an empty database, in a transaction that is then rolled back.
  Result find_or_add(const std::vector<Write>& history) {
    results::Batch batch = store_.begin();
    for (int trial = 0; trial < kTrials; ++trial) {
      batch.record_trial({id(trial), config_, "", {}, {}});
    }
    Result result;
    std::string forgotten;
    for (const Write& write : history) {
      result.number = 0;
      if (write.what == Write::What::claim) {
        results::NewAttempt wanted;
        wanted.trial_id = id(write.trial);
        wanted.planned_from = write.planned_from;
        wanted.at_least = write.number;
        wanted.sweep = "s";
        wanted.owner = fmt::format("{}", write.owner);
        const results::Claim claim = batch.begin_attempt(wanted);
        if (const auto* attempt = std::get_if<results::AttemptRef>(&claim)) {
          result.number = static_cast<int>(attempt->number);
        }
        continue;
      }
      if (write.what == Write::What::rerun) {
        results::renew(batch, id(write.trial), {write.number, false, "", 1});
        continue;
      }
      if (write.what == Write::What::stop_early) {
        results::stop_early(batch, id(write.trial), {write.number, 1, "it loses", 1});
        continue;
      }
      const results::AttemptRef attempt =
          store_.read().attempt_facts(id(write.trial), write.number)->attempt;
      if (write.what == Write::What::forget) {
        batch.forget_attempt(attempt);
        forgotten += fmt::format(" {}/{}", write.trial, write.number);
      } else if (write.what == Write::What::stopped) {
        batch.record_ending(attempt, {results::Outcome::stopped, "", {}, {}, "", 1});
      } else {
        results::record_finished(batch, attempt, {}, 1);
      }
    }
    State state{history, {}};
    std::string content = forgotten;
    for (int trial = 0; trial < kTrials; ++trial) {
      state.facts[trial] = store_.read().trial_facts(std::vector{id(trial)}).at(0);
      content += fmt::format("; {} {} {}", state.facts[trial].changes,
                             state.facts[trial].renewed_after, state.facts[trial].cancelled);
      for (const results::AttemptFacts& attempt : state.facts[trial].attempts) {
        content += fmt::format(" {}/{}/{}/{}", attempt.attempt.key, attempt.attempt.number,
                               attempt.begun.owner, static_cast<int>(attempt.outcome));
      }
    }
    const auto [entry, fresh] = numbers_.try_emplace(content, static_cast<int>(states_.size()));
    if (fresh) states_.push_back(std::move(state));
    result.state = entry->second;
    return result;
  }

  TempDir folder_;
  results::Store store_{folder_.path() / "petlab.db", {.synced = false}};
  const std::string config_ = sweeps::to_json(sweeps::default_config("adapter")).dump();
  std::vector<State> states_;
  std::map<std::string, int> numbers_;
  std::map<std::pair<int, Write>, Result> results_;
};

}  // namespace petlab::testing
