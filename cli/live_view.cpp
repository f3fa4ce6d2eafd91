#include "cli/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "orchestrator/running/progress_line.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

using orchestrator::RunningTrial;

constexpr int kGap = 2;
constexpr std::size_t kLogLines = 5;  // of one failure

// The text cut to `width` columns; what is cut ends in an ellipsis.
std::string cut(const std::string& text, int width) {
  if (reports::display_width(text) <= width) return text;
  std::string short_text;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    std::string longer = short_text + text.substr(at, next - at);
    if (reports::display_width(longer) > width - 1) break;
    short_text = std::move(longer);
    at = next;
  }
  return width > 0 ? short_text + "…" : std::string();
}

std::string padded(const std::string& text, int width, bool right) {
  const std::string space(
      static_cast<std::size_t>(std::max(0, width - reports::display_width(text))), ' ');
  return right ? space + text : text + space;
}

std::string memory_text(double mib) {
  return mib < 10240 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

struct Column {
  const char* title;
  int importance;  // the lowest goes first where the terminal is narrow
  bool right;
  std::function<std::string(const RunningTrial&)> text;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"trial", 9, false,
       [](const RunningTrial& trial) {
         const std::string id = trial.trial_id.substr(0, 8);
         return trial.variant.empty() ? id : id + " " + trial.variant;
       }},
      {"state", 7, false,
       [](const RunningTrial& trial) {
         return trial.attempt > 1 ? fmt::format("{}, attempt {}", trial.doing, trial.attempt)
                                  : trial.doing;
       }},
      {"step", 8, true,
       [](const RunningTrial& trial) {
         return trial.of > 0 ? fmt::format("{}/{}", trial.step, trial.of) : std::string();
       }},
      {"loss", 4, true,
       [](const RunningTrial& trial) {
         return trial.loss ? fmt::format("{:.4g}", *trial.loss) : std::string();
       }},
      {"best", 5, true,
       [](const RunningTrial& trial) {
         return trial.best ? fmt::format("{:.4f}", *trial.best) : std::string();
       }},
      // A launch's device has the GPU's UUID behind the slot's name.
      {"device", 3, false,
       [](const RunningTrial& trial) {
         const std::string slot = trial.slot.substr(0, trial.slot.find(' '));
         // A job of Slurm is on any host.
         const bool elsewhere = slot.starts_with("slurm-") && !trial.host.empty();
         return elsewhere ? slot + " on " + trial.host : slot;
       }},
      {"memory", 2, true,
       [](const RunningTrial& trial) {
         return trial.device_memory_mib ? memory_text(*trial.device_memory_mib) : std::string();
       }},
      {"time", 1, true,
       [](const RunningTrial& trial) { return orchestrator::duration_text(trial.seconds); }},
      {"left", 6, true,
       [](const RunningTrial& trial) {
         return trial.seconds_left ? orchestrator::duration_text(*trial.seconds_left)
                                   : std::string();
       }},
  };
  return all;
}

// Header and rows, all columns that have something to say and fit.
std::vector<std::string> draw_rows(const std::vector<RunningTrial>& running, int width) {
  struct Shown {
    const Column* column;
    std::vector<std::string> cells;
    int width = 0;
  };
  std::vector<Shown> shown;
  for (const Column& column : columns()) {
    Shown one{&column, {}, 0};
    for (const RunningTrial& trial : running) {
      one.cells.push_back(reports::printable(column.text(trial)));
      one.width = std::max(one.width, reports::display_width(one.cells.back()));
    }
    if (one.width == 0) continue;
    one.width = std::max(one.width, static_cast<int>(std::string_view(column.title).size()));
    shown.push_back(std::move(one));
  }
  const auto total = [&] {
    int sum = -kGap;
    for (const Shown& one : shown) sum += one.width + kGap;
    return sum;
  };
  // A trial's name may be cut to its id before a column goes.
  constexpr int kId = 8;
  const auto excess = [&] { return total() - width; };
  while (shown.size() > 1 && excess() > std::max(0, shown.front().width - kId)) {
    shown.erase(std::min_element(shown.begin(), shown.end(), [](const Shown& a, const Shown& b) {
      return a.column->importance < b.column->importance;
    }));
  }
  if (excess() > 0) shown.front().width = std::max(kId, shown.front().width - excess());
  std::vector<std::string> lines;
  const auto add_line = [&](const std::function<std::string(const Shown&)>& text) {
    std::string line;
    for (const Shown& one : shown) {
      if (!line.empty()) line += std::string(kGap, ' ');
      line += padded(cut(text(one), one.width), one.width, one.column->right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(cut(line, width));
  };
  add_line([](const Shown& one) { return std::string(one.column->title); });
  for (std::size_t row = 0; row < running.size(); ++row) {
    add_line([row](const Shown& one) { return one.cells[row]; });
  }
  return lines;
}

// Without a width nothing is cut.
std::vector<std::string> draw_failure(const LiveFailure& failure, std::optional<int> width) {
  const auto fit = [&](const std::string& text) { return width ? cut(text, *width) : text; };
  std::vector<std::string> lines;
  std::string reason = failure.reason;
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  lines.push_back(fit(reports::printable(
      fmt::format("{} {}: {}", failure.trial_id.substr(0, 8), failure.state, reason))));
  const std::vector<std::string> log = reports::printable_lines(failure.last_lines);
  const std::size_t first = log.size() - std::min(log.size(), kLogLines);
  for (std::size_t line = first; line < log.size(); ++line) {
    lines.push_back(fit("    " + log[line]));
  }
  return lines;
}

}  // namespace

std::vector<std::string> draw(const LivePicture& picture, int width, int height) {
  std::vector<std::string> lines;
  std::vector<std::string> summary;
  for (const std::string& line : picture.summary) {
    summary.push_back(cut(reports::printable(line), width));
  }
  std::size_t most = height > 0 ? static_cast<std::size_t>(height) : std::size_t{1} << 30;
  // The newest sweeps come last.
  if (summary.size() > most) {
    summary.erase(summary.begin(), summary.begin() + static_cast<int>(summary.size() - most));
  }
  most -= summary.size();
  if (!picture.running.empty() && most >= 2) {
    std::vector<std::string> rows = draw_rows(picture.running, width);
    if (rows.size() > most) {
      const std::size_t kept = most - 1;
      const std::size_t left_out = rows.size() - kept;
      rows.resize(kept);
      rows.push_back(cut(fmt::format("… and {} more that run", left_out), width));
    }
    lines = std::move(rows);
  }
  // The newest failures, as many as there is room for, in the order in which they came.
  std::vector<std::vector<std::string>> failures;
  std::size_t room = most - lines.size();
  std::size_t shown = 0;
  for (auto failure = picture.failures.rbegin(); failure != picture.failures.rend(); ++failure) {
    std::vector<std::string> its =
        draw_failure(*failure, height > 0 ? std::optional(width) : std::nullopt);
    const bool others = picture.failures.size() > shown + 1;
    if (its.size() + (others ? 1 : 0) > room) its.resize(std::min<std::size_t>(its.size(), 1));
    if (its.size() + (others ? 1 : 0) > room) break;
    room -= its.size();
    failures.push_back(std::move(its));
    ++shown;
  }
  if (shown < picture.failures.size() && room > 0) {
    lines.push_back(
        cut(fmt::format("{} earlier failures", picture.failures.size() - shown), width));
  }
  for (auto its = failures.rbegin(); its != failures.rend(); ++its) {
    lines.insert(lines.end(), its->begin(), its->end());
  }
  lines.insert(lines.end(), summary.begin(), summary.end());
  return lines;
}

}  // namespace petlab::cli
