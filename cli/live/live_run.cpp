#include "cli/live/live_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/live/running_json.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

// Failures printed at the end of a run; petlab status and petlab show have all.
constexpr std::size_t kMostFailures = 20;

void print(std::ostream& out, const nlohmann::ordered_json& line) {
  out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

}  // namespace

LiveRun::~LiveRun() {
  picture_.running.clear();
  picture_.results = results_.look();
  std::vector<LiveFailure>& failures = picture_.failures;
  if (failures.size() > kMostFailures) {
    failures.erase(failures.begin(), failures.end() - kMostFailures);
  }
  screen_.print(draw(picture_, screen_.size().width, 0));
}

void LiveRun::status(const orchestrator::RunStatus& status) {
  const double rate = rate_.per_second(status.finished_here);
  const std::int64_t left = status.total - status.over();
  picture_.running = status.trials;
  picture_.results = results_.look();
  picture_.summary = {orchestrator::progress_text(status, rate)};
  picture_.share = {sweep_, status.total, status.done, status.over(), std::nullopt};
  if (rate > 0 && left > 0) picture_.share->seconds_left = static_cast<double>(left) / rate;
  show();
}

void LiveRun::trial_over(const std::string& trial_id, sweeps::TrialState state,
                         const std::string& reason, const std::string& last_lines) {
  std::erase_if(picture_.failures,
                [&](const LiveFailure& failure) { return failure.trial_id == trial_id; });
  if (state == sweeps::TrialState::done) {
    results_.add(trial_id);
    return;
  }
  if (state == sweeps::TrialState::stopped) return;  // the summary counts them
  picture_.failures.push_back({trial_id, std::string(to_string(state)), reason, last_lines});
}

void LiveRun::note(const std::string& line) {
  screen_.print(reports::printable_lines(line));
  show();
}

void LiveRun::resized() { show(); }

void LiveRun::show() {
  if (picture_.summary.empty()) return;
  const Screen::Size size = screen_.size();
  screen_.show(draw(picture_, size.width, size.height));
}

void JsonLines::status(const orchestrator::RunStatus& status) {
  const double per_second = rate_.per_second(status.finished_here);
  const auto now = std::chrono::steady_clock::now();
  out_.flush();  // retries lines that could not be written earlier
  if (now - last_status_ < std::chrono::seconds(1)) return;
  nlohmann::ordered_json line = {{"event", "status"},
                                 {"total", status.total},
                                 {"done", status.done},
                                 {"running", status.running},
                                 {"waiting", status.waiting},
                                 {"elsewhere", status.elsewhere},
                                 {"failed", status.failed},
                                 {"cancelled", status.cancelled},
                                 {"stopped_early", status.stopped},
                                 {"trained", status.finished_here},
                                 {"per_second", per_second},
                                 {"trials", nlohmann::ordered_json::array()}};
  for (const auto& trial : status.trials) line["trials"].push_back(running_json(trial));
  last_status_ = now;
  print(out_, line);
}

void JsonLines::trial_over(const std::string& trial_id, sweeps::TrialState state,
                           const std::string& reason, const std::string& last_lines) {
  nlohmann::ordered_json line = {{"event", "trial_over"},
                                 {"trial", trial_id},
                                 {"state", std::string(to_string(state))},
                                 {"why", reason}};
  if (!last_lines.empty()) line["last_lines"] = last_lines;
  print(out_, line);
}

void JsonLines::note(const std::string& line) { print(out_, {{"event", "note"}, {"note", line}}); }

void JsonLines::end(const orchestrator::RunResult& result) {
  const orchestrator::RunStatus& status = result.status;
  print(out_, {{"event", "end"},
               {"total", status.total},
               {"done", status.done},
               {"cached", status.cached},
               {"stale", status.stale},
               {"failed", status.failed},
               {"cancelled", status.cancelled},
               {"stopped_early", status.stopped},
               {"trained", status.finished_here},
               {"interrupted", result.interrupted},
               {"problem", result.problem},
               {"exit_code", exit_code(result)}});
}

}  // namespace petlab::cli
