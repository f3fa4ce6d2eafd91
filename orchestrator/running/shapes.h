#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "results/attempt.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// The time and memory that trials need, by shape. Trials that differ only in the seed have the
/// same shape: they take about the same time and memory.
class Shapes {
 public:
  Shapes() = default;
  explicit Shapes(const std::vector<sweeps::SweepTrial>& trials);

  /// Learns from the finished attempts of a trial.
  void learn(std::size_t trial, const std::vector<results::AttemptFacts>& attempts);
  /// Records that the trial needed at least this much memory.
  void needed(std::size_t trial, std::int64_t memory_mib);

  /// The most memory that was measured; absent: none was.
  std::optional<std::int64_t> memory_mib(std::size_t trial) const;
  /// The mean duration of finished attempts; absent: none finished.
  std::optional<double> seconds(std::size_t trial) const;

 private:
  struct Shape {
    std::int64_t memory_mib = 0;
    double seconds = 0;  // sum
    int timed = 0;
  };
  std::vector<std::size_t> shape_of_;  // by trial
  std::vector<Shape> shapes_;
};

}  // namespace petlab::orchestrator
