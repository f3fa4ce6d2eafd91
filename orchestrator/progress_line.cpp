#include "orchestrator/progress_line.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace petlab::orchestrator {
namespace {

// The rate is that of the last minutes, so that it follows what runs now.
constexpr auto kWindow = std::chrono::minutes(5);
// Plain lines go to files and logs of batch systems.
constexpr auto kPlainEvery = std::chrono::seconds(10);

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 100) return fmt::format("{} s", whole);
  const std::int64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return fmt::format("{} min", minutes);
  if (minutes < 48 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} d {} h", minutes / 1440, minutes % 1440 / 60);
}

std::string progress_text(const RunStatus& status, double per_second) {
  std::string text = fmt::format("{} of {} done, {} running, {} failed", status.done, status.total,
                                 status.running, status.failed);
  if (status.cancelled > 0) text += fmt::format(", {} cancelled", status.cancelled);
  if (status.elsewhere > 0) text += fmt::format(", {} run elsewhere", status.elsewhere);
  if (status.stale > 0) text += fmt::format(", {} stale", status.stale);
  if (per_second <= 0) return text;
  text += per_second >= 1 ? fmt::format(", {:.1f} a second", per_second)
                          : fmt::format(", {:.1f} a minute", per_second * 60);
  const std::int64_t left = status.total - status.done - status.failed - status.cancelled;
  if (left > 0) {
    text += fmt::format(", about {} left", duration_text(static_cast<double>(left) / per_second));
  }
  return text;
}

ProgressLine::ProgressLine(std::ostream& out, bool terminal, bool quiet)
    : out_(out), terminal_(terminal), quiet_(quiet) {}

ProgressLine::~ProgressLine() {
  if (drawn_) out_ << "\n";
  out_.flush();
}

void ProgressLine::status(const RunStatus& status) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  finished_.emplace_back(now, status.finished_here);
  while (now - finished_.front().first > kWindow) finished_.pop_front();
  const double seconds = std::chrono::duration<double>(now - finished_.front().first).count();
  const std::int64_t count = status.finished_here - finished_.front().second;
  const std::string text =
      progress_text(status, seconds > 0 && count > 0 ? static_cast<double>(count) / seconds : 0);
  if (terminal_) {
    // Carriage return, then erase what an earlier, longer line left.
    out_ << "\r" << text << "\033[K" << std::flush;
    drawn_ = true;
    return;
  }
  const bool over = status.running == 0 && status.waiting == 0 && status.elsewhere == 0;
  if (text == last_ || (now - printed_ < kPlainEvery && !over)) return;
  printed_ = now;
  last_ = text;
  out_ << text << std::endl;
}

void ProgressLine::trial_over(const std::string& trial_id, sweeps::TrialState state,
                              const std::string& reason) {
  if (state == sweeps::TrialState::done) return;
  line(fmt::format("{} {}: {}", trial_id, to_string(state), reason));
}

void ProgressLine::note(const std::string& text) { line(text); }

void ProgressLine::line(const std::string& text) {
  if (drawn_) out_ << "\r\033[K";
  drawn_ = false;
  out_ << text << std::endl;
}

}  // namespace petlab::orchestrator
