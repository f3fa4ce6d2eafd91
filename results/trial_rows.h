#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "results/connection.h"
#include "results/store.h"

namespace petlab::results::internal {

// Rows of trials and of the sweeps that they are members of, within a transaction of the caller's.

/// Writes trials, with the columns that come from their configurations.
class TrialWriter {
 public:
  TrialWriter();
  /// A trial that is there already gets what is new. Throws std::invalid_argument where its
  /// configuration is no JSON object.
  void write(Connection& connection, const TrialRow& trial) const;

 private:
  std::string insert_;
};

/// Remembers what the sweep of that key loses when it becomes `sweep`.
void keep_former_members(Connection& connection, std::int64_t key, const SweepRow& sweep,
                         std::span<const TrialRow> trials, double time);
/// Forgets the former members that came back.
void forget_former_members(Connection& connection, std::int64_t key);

/// The row of a trial. Throws std::invalid_argument where there is none.
std::int64_t trial_key(Connection& connection, const std::string& trial_id);

/// Decides which attempts of a trial make its results: the finished one with the lowest number that
/// was not discarded, and its parents up to the checkpoints that were resumed from. A decision to
/// retry puts what finished later in the place of what was there. Follows from the rows alone, in
/// whatever order they came.
void recount(Connection& connection, std::int64_t trial);

}  // namespace petlab::results::internal
