#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sweeps/early_stop.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// The score of a validation, higher is better. Absent: undefined, which is worse than any other.
using Score = std::optional<double>;

/// A trial of those that may be compared: same tasks, same length of training, same validations.
struct ComparedTrial {
  std::string_view id;
  std::string_view configuration;  ///< equal for trials that differ only in the seed
  std::uint64_t seed = 0;
  bool is_opponent = true;        ///< paired: it belongs to the variant of `against`
  std::span<const Score> scores;  ///< by validation
};

/// How scores are called and shown in reasons.
struct ScoreText {
  std::string name;   ///< "accuracy", "mean score"
  double factor = 1;  ///< -1 for a metric of which lower values are better
};

/// Fewer other trials have no median that stops a trial, fewer pairs of seeds no test.
inline constexpr std::size_t kFewestForMedian = 4;
inline constexpr std::size_t kFewestPairs = 3;

/// True if the rule judges trials after that validation (from 1).
bool judges_after(const sweeps::EarlyStopRule& rule, std::size_t validation);

/// Judges a trial by the scores known now: the reason for stopping it after its `validation`-th
/// validation (from 1), or nothing if it continues. It continues if too few others have come as far
/// and if it ties. `all` includes the trial itself, whose index is `own`.
std::optional<std::string> why_stop(const sweeps::EarlyStopRule& rule, const ScoreText& text,
                                    std::span<const ComparedTrial> all, std::size_t own,
                                    std::size_t validation);

/// Describes what must be equal in trials that may be compared: what they validate on, and when.
std::string comparison_group(const sweeps::TrialConfig& config);

/// The largest share of the sweep's steps that its rule can save, 0 to 1. Absent without a rule, or
/// if the number of validations of a trial is not known before it starts.
std::optional<double> most_saved(const sweeps::Sweep& sweep);

}  // namespace petlab::orchestrator
