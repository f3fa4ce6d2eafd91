#include "reports/running.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/html.h"
#include "results/attempt_events.h"

namespace petlab::reports {
namespace {

constexpr double kWidth = 320;  // of a curve's drawing, in SVG units
constexpr double kHeight = 96;
constexpr std::size_t kMostPoints = 128;
// The trainer normally reports several times a second.
constexpr double kSilentFor = 60;

std::string span_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 100) return fmt::format("{} s", whole);
  const std::int64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

// Draws the loss over the whole planned training, so that its length shows the progress.
std::string curve_html(const RunningTrial& trial) {
  std::vector<std::pair<double, double>> points;
  for (const results::LossPoint& point : trial.curve) {
    if (point.loss) points.emplace_back(static_cast<double>(point.step), *point.loss);
  }
  if (points.size() < 2) return {};
  const auto [lowest, highest] =
      std::minmax_element(points.begin(), points.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const double low = lowest->second;
  const double high = highest->second;
  const double last_step = std::max({points.back().first, static_cast<double>(trial.of), 1.0});
  const std::size_t stride = (points.size() + kMostPoints - 1) / kMostPoints;
  std::string drawn;
  for (std::size_t i = 0; i < points.size(); i += stride) {
    // Always include the last point, if necessary in place of the one before it.
    const auto& [step, loss] = points[i + stride < points.size() ? i : points.size() - 1];
    const double height = high > low ? (loss - low) / (high - low) : 0.5;
    drawn += fmt::format("{}{:.1f},{:.1f}", drawn.empty() ? "" : " ", step / last_step * kWidth,
                         (1 - height) * kHeight);
  }
  const auto text = [](double loss) { return fmt::format("{:.4g}", loss); };
  return fmt::format(
      "<div class=\"curve\"><span>{0}</span><span>{1}</span><svg viewBox=\"0 0 {2} {3}\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"loss from {4} at step {5:.0f} to {6} "
      "at step {7:.0f}, between {1} and {0}\"><polyline points=\"{8}\"/></svg></div>",
      text(high), text(low), kWidth, kHeight, text(points.front().second), points.front().first,
      text(points.back().second), points.back().first, drawn);
}

std::string trial_html(const RunningTrial& trial, double time) {
  std::vector<std::string> facts = {"sweep " + trial.sweep};
  if (trial.attempt > 1) facts.push_back(fmt::format("attempt {}", trial.attempt));
  if (trial.of > 0) {
    facts.push_back(fmt::format("step {} of {}", trial.step, trial.of));
    facts.push_back(trial.loss ? fmt::format("loss {:.4g}", *trial.loss)
                               : "the loss is not finite");
  } else {
    facts.emplace_back("has not begun to train");
  }
  const std::string slot = trial.device.substr(0, trial.device.find(' '));
  if (!slot.empty()) facts.push_back(trial.host.empty() ? slot : slot + " on " + trial.host);
  if (trial.begun_at) facts.push_back("for " + span_text(time - *trial.begun_at));
  if (trial.reported_at && time - *trial.reported_at > kSilentFor) {
    facts.push_back("silent for " + span_text(time - *trial.reported_at));
  }
  std::string html = fmt::format(
      "<li><h3><code>{}</code> {}</h3>\n<p>{}</p>\n", escaped_html(trial.trial_id.substr(0, 8)),
      escaped_html(trial.variant), escaped_html(fmt::format("{}", fmt::join(facts, " · "))));
  if (trial.of > 0) {
    html += fmt::format("<progress max=\"{}\" value=\"{}\" aria-label=\"steps\"></progress>\n",
                        trial.of, std::min(trial.step, trial.of));
  }
  return html + curve_html(trial) + "</li>\n";
}

}  // namespace

Now running_now(const results::Reader& reader, const results::LossReader& losses,
                const results::IsAlive& alive, std::size_t most) {
  Now now;
  std::vector<results::AttemptFacts> open = reader.open_attempts();
  std::erase_if(open, [&](const results::AttemptFacts& attempt) { return !alive(attempt); });
  std::map<std::int64_t, results::ProgressFacts> progress;
  for (results::ProgressFacts& one : results::open_progress(reader)) {
    progress.emplace(one.attempt.key, std::move(one));
  }
  std::sort(open.begin(), open.end(),
            [](const auto& a, const auto& b) { return a.attempt.key < b.attempt.key; });
  if (open.size() > most) {
    now.others = open.size() - most;
    open.resize(most);
  }
  for (const results::AttemptFacts& attempt : open) {
    RunningTrial trial;
    trial.trial_id = attempt.attempt.trial_id;
    trial.attempt = attempt.attempt.number;
    trial.sweep = attempt.begun.sweep;
    trial.variant =
        fmt::format("{}", fmt::join(reader.variants(trial.sweep, trial.trial_id), ", "));
    trial.host = attempt.begun.host;
    trial.device = attempt.begun.device;
    trial.begun_at = attempt.started_at;
    if (const auto latest = progress.find(attempt.attempt.key); latest != progress.end()) {
      trial.step = latest->second.step;
      trial.of = latest->second.of;
      trial.loss = latest->second.loss;
      trial.reported_at = latest->second.time;
    }
    trial.curve = losses.of_trial(trial.trial_id, trial.attempt);
    now.running.push_back(std::move(trial));
  }
  return now;
}

std::string to_html(const Now& now, double time) {
  std::string html;
  if (!now.problem.empty()) {
    html += "<p class=\"problem\" role=\"alert\">" + escaped_html(now.problem) + "</p>\n";
  }
  if (now.running.empty()) return html + "<p class=\"about\">Nothing runs now.</p>\n";
  html += fmt::format("<h2>Running now: {}</h2>\n<ul class=\"running\">\n",
                      now.running.size() + now.others);
  for (const RunningTrial& trial : now.running) html += trial_html(trial, time);
  html += "</ul>\n";
  if (now.others > 0) html += fmt::format("<p class=\"about\">and {} more</p>\n", now.others);
  return html;
}

}  // namespace petlab::reports
