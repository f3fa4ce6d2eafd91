#pragma once

#include <chrono>
#include <deque>
#include <iosfwd>
#include <string>

#include "orchestrator/run.h"

namespace petlab::orchestrator {

/// "12 of 30 done, 2 running, 1 failed, 3.4 a minute, about 5 min left". `per_second` is 0 where no
/// rate is known yet.
std::string progress_text(const RunStatus& status, double per_second);
/// "45 s", "5 min", "3 h 20 min", "2 d 4 h".
std::string duration_text(double seconds);

/// Prints where a run is: on a terminal one line that is rewritten, elsewhere a plain line now and
/// then; failures and notes always as lines of their own.
class ProgressLine : public RunObserver {
 public:
  using Clock = std::chrono::steady_clock;
  ProgressLine(std::ostream& out, bool terminal, bool quiet);
  ~ProgressLine() override;

  void status(const RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state,
                  const std::string& reason) override;
  void note(const std::string& line) override;

 private:
  void line(const std::string& text);
  std::ostream& out_;
  bool terminal_;
  bool quiet_;
  bool drawn_ = false;
  std::string last_;
  Clock::time_point printed_;
  std::deque<std::pair<Clock::time_point, std::int64_t>> finished_;  // of the last minutes
};

}  // namespace petlab::orchestrator
