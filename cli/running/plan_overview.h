#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/sweep_arguments.h"
#include "sweeps/locations.h"

namespace petlab::cli {

/// A summary of several sweep files.
struct PlanOverview {
  struct Row {
    std::string file;
    std::string sweep;
    std::int64_t trials = 0;
    std::int64_t shared = 0;    // trials that an earlier file contains too
    std::int64_t to_train = 0;  // new and interrupted trials
    std::vector<std::string> notes;
  };
  std::vector<Row> rows;      // in order of the files
  std::int64_t trials = 0;    // counting equal trials once
  std::int64_t to_train = 0;  // likewise; without those that have a result in any database
};

/// Plans each of `files` with the options of `arguments`, ignoring its own file. Without --db, each
/// file uses the database next to it. Throws as load_sweep and plan_sweep.
PlanOverview plan_overview(const std::vector<std::string>& files, const SweepArguments& arguments,
                           const sweeps::Locations& locations,
                           const sweeps::Environment& environment,
                           const orchestrator::WorkerCommand& worker,
                           std::optional<std::int64_t> retries);

/// Prints text for people or one JSON object.
void print_overview(std::ostream& out, const PlanOverview& overview, bool json);

}  // namespace petlab::cli
