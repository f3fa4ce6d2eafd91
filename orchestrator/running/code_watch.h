#pragma once

#include <string>
#include <vector>

#include "orchestrator/planning/code_changes.h"
#include "orchestrator/running/run_context.h"

namespace petlab::orchestrator {

/// Records what the workers of a run run, and notices when it changes: notes it, or with
/// RunOptions::strict_code ends the run.
class CodeWatch {
 public:
  CodeWatch(RunContext& context, Course& course)
      : context_(context), course_(course), known_(context.input.options.code_at_start) {}

  /// Captures what a worker that starts now runs. Returns its Launch::code; empty if nothing is
  /// captured (RunOptions::code is nullptr), or if the runs folder cannot be written, which is
  /// noted.
  std::string capture();
  /// Compares what a worker has reported (provenance of its event `started`; may be empty) with
  /// what workers reported before. Returns false if the trial must not continue.
  bool reported(const std::string& worker_said);

 private:
  /// Returns false if the run ends because of the changes.
  bool changed(const std::vector<std::string>& changes);

  RunContext& context_;
  Course& course_;
  KnownCode known_;     // the last record, and the last that workers said
  std::string digest_;  // of the record; empty: not written yet
};

}  // namespace petlab::orchestrator
