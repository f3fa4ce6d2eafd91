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

/// A point of a loss curve: the mean over the `steps` optimizer steps that end with `step`. Points
/// are means of `progress` events, and are merged in pairs whenever an attempt would exceed
/// kMostLossPoints, so that the size of a curve is bounded.
struct LossPoint {
  std::int64_t attempt = 0;  // its number
  std::int64_t seq = 0;      // of the last event in this point
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t reports = 0;    // number of events in this point
  std::optional<double> loss;  // absent if one of them was not finite
  bool operator==(const LossPoint&) const = default;
};

/// The losses of a trial, by step.
struct TrialLosses {
  std::string trial_id;
  std::vector<LossPoint> points;
};

inline constexpr std::int64_t kMostLossPoints = 512;

/// Reads loss curves: of a trial's result with the attempts that it resumed from, as far as these
/// count. Without a result, uses the last attempt and those that it resumed from. Empty if an
/// earlier petlab read the events. Throws results::Error, as Reader.
class LossReader {
 public:
  explicit LossReader(const std::filesystem::path& database);
  ~LossReader();
  LossReader(LossReader&&) noexcept;
  LossReader& operator=(LossReader&&) noexcept;

  /// If `attempt` is given, uses that attempt and those that it resumed from. Empty for an unknown
  /// trial.
  std::vector<LossPoint> of_trial(const std::string& trial_id,
                                  std::optional<std::int64_t> attempt = {}) const;
  /// Calls `take` once for each trial of a sweep that has losses and is not hidden, in the sweep's
  /// order, in one pass over the database.
  void each_of_sweep(const std::string& sweep,
                     const std::function<void(const TrialLosses&)>& take) const;

 private:
  std::shared_ptr<internal::Connection> connection_;
};

namespace internal {

/// Appends an attempt's reports to its stored points. Must be called in a transaction. The points
/// do not depend on how reports are distributed over calls.
void append_losses(Connection& connection, std::int64_t attempt,
                   std::span<const LossReport> reports);

}  // namespace internal
}  // namespace petlab::results
