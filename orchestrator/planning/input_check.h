#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// What is wrong with the files that trials read, found before any is trained.
struct InputCheck {
  /// One a backbone or task at most, each naming its file; of several in one file the first.
  std::vector<std::string> problems;
  /// Why nothing was looked at; empty: all backbones and tasks of the trials were read.
  std::string not_looked;
};

/// Asks the program that a worker brings for it (`WORKER-check` beside WORKER,
/// docs/reference/worker-protocol.md) about the backbones and tasks of these trials (places in the
/// sweep). A worker without one reads files of its own.
InputCheck check_inputs(const sweeps::Sweep& sweep, std::span<const std::size_t> trials,
                        const sweeps::Locations& locations, const WorkerCommand& worker);

}  // namespace petlab::orchestrator
