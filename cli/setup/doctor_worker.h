#pragma once

#include <chrono>
#include <string>

#include "cli/setup/doctor_checks.h"
#include "orchestrator/launching/worker_command.h"
#include "orchestrator/planning/worker_description.h"
#include "sweeps/locations.h"

namespace petlab::cli {

/// How long doctor waits for an answer of another program.
inline constexpr auto kAnswerWithin = std::chrono::seconds(30);

/// The worker of `petlab run`, as far as it was found and answered.
struct FoundWorker {
  orchestrator::WorkerCommand command;
  orchestrator::WorkerDescription description;
};

/// The fix for a petlab-trainer that is missing or cannot run.
std::string trainer_fix();

/// Checks whether the worker can run, and adds the group "worker" to the diagnosis. `named` is
/// --worker; if it is empty, checks petlab-trainer, whose problems have the fix `fix`.
FoundWorker look_at_worker(const std::string& named, const std::string& fix,
                           const sweeps::Environment& environment, Diagnosis& diagnosis);

}  // namespace petlab::cli
