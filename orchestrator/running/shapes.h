#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "results/attempt.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// What trials need that differ in the seed alone: they take about equally long, and as much
/// memory.
class Shapes {
 public:
  Shapes() = default;
  explicit Shapes(const std::vector<sweeps::SweepTrial>& trials);

  /// Learns from the attempts of a trial that finished.
  void learn(std::size_t trial, const std::vector<results::AttemptFacts>& attempts);
  /// A worker at this trial was seen to need that much, at least.
  void needed(std::size_t trial, std::int64_t memory_mib);

  /// The most that was measured; absent: nothing was.
  std::optional<std::int64_t> memory_mib(std::size_t trial) const;
  /// The mean over finished attempts; absent: none finished.
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
