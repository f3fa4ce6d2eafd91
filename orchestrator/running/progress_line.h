#pragma once

#include <chrono>
#include <deque>
#include <iosfwd>
#include <string>

#include "orchestrator/running/run.h"

namespace petlab::orchestrator {

/// "12 of 30 done, 2 running, 1 failed, 3.4 a minute, about 5 min left". `per_second` is 0 if no
/// rate is known yet.
std::string progress_text(const RunStatus& status, double per_second);
/// ", 3.4 a minute, about 5 min left"; empty if no rate is known.
std::string rate_text(double per_second, std::int64_t left);
/// "45 s", "5 min", "3 h 20 min", "2 d 4 h".
std::string duration_text(double seconds);

/// Finished trials per second over the last minutes, so that it reflects the current trials.
class FinishRate {
 public:
  /// `finished`: total number so far. Returns 0 if no rate is known yet.
  double per_second(std::int64_t finished);

 private:
  std::deque<std::pair<std::chrono::steady_clock::time_point, std::int64_t>> finished_;
};

/// Prints a run's progress as plain lines from time to time, for files and logs. Failures and notes
/// are printed immediately.
class ProgressLine : public RunObserver {
 public:
  /// `quiet`: failures and notes only.
  ProgressLine(std::ostream& out, bool quiet) : out_(out), quiet_(quiet) {}

  void status(const RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state, const std::string& reason,
                  const std::string& last_lines) override;
  void note(const std::string& line) override;

 private:
  std::ostream& out_;
  bool quiet_;
  std::string last_;
  std::chrono::steady_clock::time_point printed_;
  FinishRate rate_;
};

}  // namespace petlab::orchestrator
