#pragma once

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/core/tiny_world.h"
#include "trainer/training/loop.h"

namespace petlab::testing {

struct Run {
  trainer::TrialOutcome outcome = trainer::TrialOutcome::failed;
  std::map<std::int64_t, double> losses;  // by step
  std::vector<protocol::Event> events;
  std::string log;
};

/// Trains an attempt and stops it after `stop_after` steps (0: never).
inline Run train(const std::filesystem::path& attempt, std::int64_t stop_after = 0) {
  Run run;
  trainer::BackboneStore backbones;
  std::atomic<bool> stop{false};
  std::ostringstream log;
  double now = 1000;
  run.outcome = trainer::train_gang(
      {attempt}, backbones, stop, [&] { return now += 1; }, log,
      [&](std::int64_t step, double loss) {
        run.losses[step] = loss;
        if (step == stop_after) stop = true;
      });
  run.events = read_events(attempt);
  run.log = log.str();
  return run;
}

/// Returns the losses of a trial's first steps and stores the tensors after them in `tensors`.
inline std::vector<double> first_losses(trainer::BackboneStore& backbones,
                                        const protocol::TrialFile& trial,
                                        const trainer::Placement& placement, std::int64_t steps,
                                        trainer::NamedTensors* tensors = nullptr) {
  const auto backbone = backbones.get(trial.backbone_folder, placement);
  std::vector<double> losses;
  std::atomic<bool> stop{false};
  trainer::LoopObserver observer;
  observer.on_step = [&](std::int64_t step, std::int64_t, double loss) {
    losses.push_back(loss);
    stop = step == steps;
  };
  trainer::TrainingLoop loop(
      trial.config,
      trainer::load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone),
      backbone->pretrained(), observer);
  CHECK_THROWS_AS(loop.run(stop), trainer::Interrupted);
  if (tensors != nullptr) {
    for (const auto& [name, tensor] : loop.tensors()) tensors->emplace(name, tensor.clone());
  }
  return losses;
}

}  // namespace petlab::testing
