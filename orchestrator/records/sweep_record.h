#pragma once

#include <filesystem>
#include <vector>

#include "results/store.h"

namespace petlab::orchestrator {

/// Writes runs/sweeps/<name>.jsonl (temporary name, synced, renamed) and, where the sweep's text is
/// known, runs/sweeps/<digest>.yaml, then stores the sweep in a
/// transaction of its own. The last sweep of a name counts; trials that it has no more stay known.
/// A file that says the same already only gets the new time.
void record_sweep(results::Store& store, const std::filesystem::path& runs,
                  const results::SweepRow& sweep, const std::vector<results::TrialRow>& trials,
                  double time);

/// What record_sweep wrote.
struct SweepFile {
  results::SweepRow sweep;
  std::vector<results::TrialRow> trials;
  double time = 0;
};
/// Throws also where it is no such file.
SweepFile read_sweep_file(const std::filesystem::path& file);

}  // namespace petlab::orchestrator
