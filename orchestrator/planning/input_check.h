#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// Problems with the files that trials read, found before training.
struct InputCheck {
  /// At most one problem per backbone or task, with the name of its file: the first one found.
  std::vector<std::string> problems;
  /// Why nothing was checked; empty if all backbones and tasks of the trials were read.
  std::string not_looked;
};

/// Checks the backbones and tasks of these trials (indices in the sweep) with the worker's check
/// program (`WORKER-check` next to WORKER, docs/reference/worker-protocol.md). If there is none,
/// nothing is checked, since the worker may use other file formats.
InputCheck check_inputs(const sweeps::Sweep& sweep, std::span<const std::size_t> trials,
                        const sweeps::Locations& locations, const WorkerCommand& worker);

}  // namespace petlab::orchestrator
