#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/sweep_arguments.h"
#include "sweeps/locations.h"

namespace petlab::cli {

/// What several sweep files ask for together.
struct PlanOverview {
  struct Row {
    std::string file;
    std::string sweep;
    std::int64_t trials = 0;
    std::int64_t shared = 0;    // that a file before it asks for, too
    std::int64_t to_train = 0;  // new and interrupted ones
    std::vector<std::string> notes;
  };
  std::vector<Row> rows;      // in the order of the files
  std::int64_t trials = 0;    // each once
  std::int64_t to_train = 0;  // each once; none that the database of one of the sweeps has
};

/// Plans each of `files` with the options of `arguments`, whose own file does not count: without
/// --db each with the database beside it. Throws as load_sweep and plan_sweep do.
PlanOverview plan_overview(const std::vector<std::string>& files, const SweepArguments& arguments,
                           const sweeps::Locations& locations,
                           const orchestrator::WorkerCommand& worker,
                           std::optional<std::int64_t> retries);

/// As text for people, or as one JSON object.
void print_overview(std::ostream& out, const PlanOverview& overview, bool json);

}  // namespace petlab::cli
