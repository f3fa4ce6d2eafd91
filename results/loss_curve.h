#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/attempt_events.h"
#include "results/store.h"

namespace petlab::results {

/// A point of a loss curve: the mean over the `steps` optimizer steps that end with `step`. Means
/// of `progress` events, put together two by two whenever there would be more than kMostLossPoints
/// of an attempt, so that a curve of any length takes as much room.
struct LossPoint {
  std::int64_t attempt = 0;  // its number
  std::int64_t seq = 0;      // of the last event in it
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t reports = 0;    // events in it
  std::optional<double> loss;  // absent: one of them was not finite
  bool operator==(const LossPoint&) const = default;
};

/// The losses of a trial, by step.
struct TrialLosses {
  std::string trial_id;
  std::vector<LossPoint> points;
};

inline constexpr std::int64_t kMostLossPoints = 512;

/// Reads loss curves: of a trial's result with the attempts that it resumed from, as far as these
/// count; without a result those of its last attempt and what that resumed from. Nothing where an
/// earlier petlab read the events. Throws results::Error, as Reader.
class LossReader {
 public:
  explicit LossReader(const std::filesystem::path& database);
  ~LossReader();
  LossReader(LossReader&&) noexcept;
  LossReader& operator=(LossReader&&) noexcept;

  /// With a number of that attempt, and what it resumed from. Empty too for a trial that there is
  /// not.
  std::vector<LossPoint> of_trial(const std::string& trial_id,
                                  std::optional<std::int64_t> attempt = {}) const;
  /// Calls `take` with those of each trial of a sweep that has some and is not hidden, each once,
  /// in the sweep's order, in one pass over the database.
  void each_of_sweep(const std::string& sweep,
                     const std::function<void(const TrialLosses&)>& take) const;

 private:
  std::shared_ptr<internal::Connection> connection_;
};

namespace internal {

/// Puts what an attempt reported behind what is stored of it, within a transaction of the caller's.
/// However the reports are divided among calls, the same points come of them.
void append_losses(Connection& connection, std::int64_t attempt,
                   std::span<const LossReport> reports);

}  // namespace internal
}  // namespace petlab::results
