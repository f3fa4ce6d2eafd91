#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "results/connection.h"
#include "results/store.h"

namespace petlab::results::internal {

// Rows of trials and of their sweeps. All functions must be called in a transaction.

/// Writes trials, with columns for the fields of their configurations.
class TrialWriter {
 public:
  TrialWriter();
  /// Updates an existing trial. Throws std::invalid_argument if its configuration is not a JSON
  /// object.
  void write(Connection& connection, const TrialRow& trial) const;

 private:
  std::string insert_;
};

/// Stores the members that the sweep loses when it becomes `sweep`.
void keep_former_members(Connection& connection, std::int64_t key, const SweepRow& sweep,
                         std::span<const TrialRow> trials, double time);
/// Removes former members that are members again.
void forget_former_members(Connection& connection, std::int64_t key);

/// The key of a trial. Throws std::invalid_argument if it does not exist.
std::int64_t trial_key(Connection& connection, const std::string& trial_id);

/// Determines which attempts make a trial's result: the finished one with the lowest number that
/// was not discarded, and its parents up to the checkpoints resumed from. After a retry decision, a
/// later finished attempt replaces the earlier result. Depends only on the rows, not on their order
/// of arrival.
void recount(Connection& connection, std::int64_t trial);

}  // namespace petlab::results::internal
