#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {
class FileProblems;
struct YamlNode;
}  // namespace petlab::base

namespace petlab::sweeps {

/// A sweep's rule for stopping trials that lose against others (`stop_early` in a sweep file,
/// docs/guides/stop-losers-early.md). It does not affect trial ids. Progress is counted in
/// validations, of which a trial has one per epoch unless training.evaluate_every says otherwise.
struct EarlyStopRule {
  enum class Kind {
    /// At the validations of `at`, only the best `keep` continue: successive halving without
    /// waiting (Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", as
    /// Optuna's SuccessiveHalvingPruner).
    halving,
    /// From validation `after` on, a trial continues while it is not worse than the median of the
    /// others at equal progress (Golovin et al. 2017, "Google Vizier").
    median,
    /// From validation `after` on, a trial continues until a paired t test over seeds says that its
    /// configuration is worse than the best one (as Optuna's WilcoxonPruner).
    paired,
  };
  Kind kind = Kind::halving;
  /// Empty: the metrics by which the tasks select their best step.
  std::string metric;
  std::vector<std::int64_t> at;  ///< halving: validations from 1, ascending
  double keep = 1.0 / 3;         ///< halving: in (0, 1)
  std::int64_t after = 1;        ///< median, paired: a validation from 1
  std::string against;           ///< paired: a variant; empty: all
  double p = 0.05;               ///< paired: in (0, 0.5]
  bool operator==(const EarlyStopRule&) const = default;
};

/// "halving", "median", "paired".
std::string_view to_string(EarlyStopRule::Kind kind);

/// Reads the section. Problems go to `problems`. Whether `against` is a variant and the tasks have
/// the metric is for the caller to check.
EarlyStopRule read_early_stop(const base::YamlNode& node, base::FileProblems& problems);

}  // namespace petlab::sweeps
