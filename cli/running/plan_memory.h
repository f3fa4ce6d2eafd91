#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "sweeps/memory.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {

/// What `petlab plan --memory` says: what petlab-trainer needs for each of the sweep's trials, in
/// their order.
std::vector<sweeps::MemoryEstimate> estimate_all(const sweeps::Sweep& sweep,
                                                 sweeps::MemoryDevice device);

/// A table with a row for the trials that need the same, in the order of the first of each.
void print_memory(std::ostream& out, const sweeps::Sweep& sweep,
                  const std::vector<sweeps::MemoryEstimate>& estimates,
                  sweeps::MemoryDevice device);

/// The object `memory` of a trial in `petlab plan --json`.
nlohmann::ordered_json memory_json(const sweeps::MemoryEstimate& estimate,
                                   sweeps::MemoryDevice device);

}  // namespace petlab::cli
