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

/// The display of `petlab run` on a terminal: a picture redrawn in place, with notes above it. At
/// the end it prints all failures and the summary. A stopped terminal never blocks the run.
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

/// `petlab run --json`: prints one JSON object per line, whose `event` is `status` (at most one per
/// second), `trial_over`, `note` or `end`.
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
