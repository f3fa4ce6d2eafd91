#include "orchestrator/running/progress_line.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "base/shown.h"

namespace petlab::orchestrator {
namespace {

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
  if (status.stopped > 0) text += fmt::format(", {} stopped early", status.stopped);
  if (status.elsewhere > 0) text += fmt::format(", {} running elsewhere", status.elsewhere);
  if (status.stale > 0) text += fmt::format(", {} stale", status.stale);
  return text + rate_text(per_second, status.total - status.over());
}

std::string rate_text(double per_second, std::int64_t left) {
  if (per_second <= 0) return {};
  std::string text = per_second >= 1 ? fmt::format(", {:.1f} a second", per_second)
                                     : fmt::format(", {:.1f} a minute", per_second * 60);
  if (left > 0) {
    text += fmt::format(", about {} left", duration_text(static_cast<double>(left) / per_second));
  }
  return text;
}

double FinishRate::per_second(std::int64_t finished) {
  const auto now = std::chrono::steady_clock::now();
  finished_.emplace_back(now, finished);
  while (now - finished_.front().first > kWindow) finished_.pop_front();
  const double seconds = std::chrono::duration<double>(now - finished_.front().first).count();
  const std::int64_t count = finished - finished_.front().second;
  return seconds > 0 && count > 0 ? static_cast<double>(count) / seconds : 0;
}

void ProgressLine::status(const RunStatus& status) {
  out_.flush();  // retries lines that could not be written earlier
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  const std::string text = progress_text(status, rate_.per_second(status.finished_here));
  const bool over = status.running == 0 && status.waiting == 0 && status.elsewhere == 0;
  if (text == last_ || (now - printed_ < kPlainEvery && !over)) return;
  printed_ = now;
  last_ = text;
  out_ << text << std::endl;
}

void ProgressLine::trial_over(const std::string& trial_id, sweeps::TrialState state,
                              const std::string& reason, const std::string&) {
  if (state == sweeps::TrialState::done) return;
  out_ << fmt::format("{} {}: {}", trial_id, to_string(state), base::printable_message(reason))
       << std::endl;
}

void ProgressLine::note(const std::string& line) {
  out_ << base::printable_message(line) << std::endl;
}

}  // namespace petlab::orchestrator
