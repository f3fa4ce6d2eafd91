#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/scores.h"
#include "results/store.h"

namespace petlab::results {

namespace internal {
class WantedSeries;
}

/// Of which trials of a sweep scores are wanted.
struct SweepQuestion {
  enum class Steps { selected, every };
  std::string sweep;
  Steps steps = Steps::selected;
  /// std::nullopt: all.
  std::optional<std::vector<std::string>> trial_ids;
};

/// What one trial of a sweep reported. Valid during the call.
struct SweepTrial {
  const std::string& trial_id;
  std::optional<double> bls_bits;           ///< as its worker measured them, else as they
  std::optional<std::int64_t> stored_bits;  ///< were planned
  /// Those that count, by series; with every step all of them, as they were reported.
  std::span<const Score> scores;
};

/// Reads the scores of trials, a sweep at a time. Which metrics there are is looked up once: those
/// that are new later are left out.
class SweepScores {
 public:
  /// Throws Error, as Reader. The reader must outlive it.
  SweepScores(const Reader& reader, const std::function<bool(const SeriesName&)>& wanted);
  ~SweepScores();
  SweepScores(const SweepScores&) = delete;
  SweepScores& operator=(const SweepScores&) = delete;

  /// Calls `take` once with each trial of the sweep that has a result and is not hidden, in the
  /// order in which trials were recorded. A score counts for the trial's own tasks and for tasks
  /// that no trial has, as with ScoreReader. The number of statements does not grow with the number
  /// of trials.
  /// Throws Error, as Reader.
  void each(const SweepQuestion& question, const std::function<void(const SweepTrial&)>& take);

 private:
  const Reader& reader_;
  std::unique_ptr<internal::WantedSeries> wanted_;
};

}  // namespace petlab::results
