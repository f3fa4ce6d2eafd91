#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "sweeps/memory.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {

/// For `petlab plan --memory`: the memory that petlab-trainer needs for each trial of the sweep, in
/// order.
std::vector<sweeps::MemoryEstimate> estimate_all(const sweeps::Sweep& sweep,
                                                 sweeps::MemoryDevice device);

/// Prints a table with one row per group of trials with equal needs, in order of their first
/// trials.
void print_memory(std::ostream& out, const sweeps::Sweep& sweep,
                  const std::vector<sweeps::MemoryEstimate>& estimates,
                  sweeps::MemoryDevice device);

/// The object `memory` of a trial in `petlab plan --json`.
nlohmann::ordered_json memory_json(const sweeps::MemoryEstimate& estimate,
                                   sweeps::MemoryDevice device);

}  // namespace petlab::cli
