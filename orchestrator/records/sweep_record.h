#pragma once

#include <filesystem>
#include <vector>

#include "results/store.h"

namespace petlab::orchestrator {

/// Writes runs/sweeps/<name>.jsonl (temporary name, synced, renamed) and, if the sweep's text is
/// known, runs/sweeps/<digest>.yaml, likewise the worker's catalog, then stores the sweep in a
/// separate transaction. The last sweep of a name counts, but its former trials stay recorded. If
/// the contents are unchanged, only the time is updated.
void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time);

/// The contents of a sweep's file.
struct SweepFile {
  results::SweepRow sweep;
  std::vector<results::TrialRow> trials;
  double time = 0;
};
/// Reads a file written by record_sweep. Throws if it is missing or invalid.
SweepFile read_sweep_file(const std::filesystem::path& file);

}  // namespace petlab::orchestrator
