#pragma once

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/core/tiny_world.h"

namespace petlab::testing {

struct Run {
  trainer::TrialOutcome outcome = trainer::TrialOutcome::failed;
  std::map<std::int64_t, double> losses;  // by step
  std::vector<protocol::Event> events;
  std::string log;
};

/// Trains an attempt; asks it to stop after `stop_after` steps (0: never).
inline Run train(const std::filesystem::path& attempt, std::int64_t stop_after = 0) {
  Run run;
  trainer::BackboneStore backbones;
  std::atomic<bool> stop{false};
  std::ostringstream log;
  double now = 1000;
  run.outcome = trainer::train_trial(
      attempt, backbones, stop, [&] { return now += 1; }, log,
      [&](std::int64_t step, double loss) {
        run.losses[step] = loss;
        if (step == stop_after) stop = true;
      });
  run.events = read_events(attempt);
  run.log = log.str();
  return run;
}

}  // namespace petlab::testing
