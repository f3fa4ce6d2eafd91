#pragma once

#include <chrono>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "cli/live/last_results.h"
#include "cli/live/live_view.h"
#include "cli/output/screen.h"
#include "orchestrator/running/progress_line.h"
#include "orchestrator/running/run.h"

namespace petlab::cli {

/// `petlab run` on a terminal: the picture of the run, drawn in place; notes stay above it. At the
/// end all failures are printed, and the summary. Nothing waits for a terminal that is stopped.
class LiveRun : public orchestrator::RunObserver {
 public:
  /// Draws on the terminal that `out` writes to. The sweep must outlive it.
  LiveRun(PatientWriter& out, const std::filesystem::path& database, const sweeps::Sweep& sweep,
          bool colour)
      : screen_(out), results_(database, sweep), sweep_(sweep.name) {
    picture_.colour = colour;
  }
  ~LiveRun() override;

  void status(const orchestrator::RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state, const std::string& reason,
                  const std::string& last_lines) override;
  void note(const std::string& line) override;
  void resized() override;

 private:
  void show();
  Screen screen_;
  LivePicture picture_;
  LastResults results_;
  std::string sweep_;
  orchestrator::FinishRate rate_;
};

/// `petlab run --json`: one JSON object a line, with `event`: `status` (at most
/// one a second), `trial_over`, `note`, and `end`.
class JsonLines : public orchestrator::RunObserver {
 public:
  explicit JsonLines(std::ostream& out) : out_(out) {}

  void status(const orchestrator::RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state, const std::string& reason,
                  const std::string& last_lines) override;
  void note(const std::string& line) override;
  void end(const orchestrator::RunResult& result);

 private:
  std::ostream& out_;
  orchestrator::FinishRate rate_;
  std::chrono::steady_clock::time_point last_status_;
};

}  // namespace petlab::cli
