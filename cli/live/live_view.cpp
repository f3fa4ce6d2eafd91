#include "cli/live/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "cli/output/answer_output.h"
#include "orchestrator/running/progress_line.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

using orchestrator::RunningTrial;

constexpr int kGap = 2;
constexpr std::size_t kLogLines = 5;  // per failure

// Truncates text to `width` columns, with an ellipsis.
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

enum class Colour { none, good, running, waiting, bad };

// Colours text, unless the colour is none or colours are off.
std::string coloured(const std::string& text, Colour colour, bool wanted) {
  static constexpr const char* kCodes[] = {"", "\033[32m", "\033[36m", "\033[33m", "\033[31m"};
  if (!wanted || colour == Colour::none) return text;
  return kCodes[static_cast<int>(colour)] + text + "\033[0m";
}

Colour colour_of(const RunningTrial& trial) {
  if (trial.doing == "training") return Colour::running;
  return trial.doing == "stopping" ? Colour::bad : Colour::waiting;
}

std::string padded(const std::string& text, int width, bool right) {
  const std::string space(
      static_cast<std::size_t>(std::max(0, width - reports::display_width(text))), ' ');
  return right ? space + text : text + space;
}

std::string memory_text(double mib) {
  return mib < 10240 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

constexpr std::string_view kState = "state";

struct Column {
  std::string_view title;
  int importance;  // the least important columns are dropped first on narrow terminals
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
      {kState, 7, false,
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
         return trial.loss ? short_number(*trial.loss) : std::string();
       }},
      {"best", 5, true,
       [](const RunningTrial& trial) {
         return trial.best ? short_number(*trial.best) : std::string();
       }},
      // In a launch's device, the GPU's UUID follows the slot's name.
      {"device", 3, false,
       [](const RunningTrial& trial) {
         const std::string slot = trial.slot.substr(0, trial.slot.find(' '));
         // A Slurm job may run on any host.
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

// Header and rows, with the columns that fit and are not empty.
std::vector<std::string> draw_rows(const std::vector<RunningTrial>& running, int width,
                                   bool colour) {
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
    one.width = std::max(one.width, static_cast<int>(column.title.size()));
    shown.push_back(std::move(one));
  }
  const auto total = [&] {
    int sum = -kGap;
    for (const Shown& one : shown) sum += one.width + kGap;
    return sum;
  };
  // Trial names are shortened to ids before columns are dropped.
  constexpr int kId = 8;
  const auto excess = [&] { return total() - width; };
  while (shown.size() > 1 && excess() > std::max(0, shown.front().width - kId)) {
    shown.erase(std::min_element(shown.begin(), shown.end(), [](const Shown& a, const Shown& b) {
      return a.column->importance < b.column->importance;
    }));
  }
  if (excess() > 0) shown.front().width = std::max(kId, shown.front().width - excess());
  std::vector<std::string> lines;
  const auto add_line = [&](const std::function<std::string(const Shown&)>& text, Colour state) {
    std::string line;
    std::string plain;
    for (const Shown& one : shown) {
      const std::string gap(plain.empty() ? 0 : kGap, ' ');
      const std::string cell = padded(cut(text(one), one.width), one.width, one.column->right);
      plain += gap + cell;
      line += gap + coloured(cell, one.column->title == kState ? state : Colour::none, colour);
    }
    // A line too wide for its columns is cut, so it shows only the id and no colours.
    if (reports::display_width(plain) > width) line = cut(plain, width);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  };
  add_line([](const Shown& one) { return std::string(one.column->title); }, Colour::none);
  for (std::size_t row = 0; row < running.size(); ++row) {
    add_line([row](const Shown& one) { return one.cells[row]; }, colour_of(running[row]));
  }
  return lines;
}

std::string draw_result(const LiveResult& result, int width, bool colour) {
  std::string text = " " + result.trial_id.substr(0, 8);
  if (!result.variant.empty()) text += " " + result.variant;
  const char* separator = "  ";
  for (const LiveResult::Score& score : result.scores) {
    text += fmt::format("{}{} {} {}", separator, score.task, score.metric,
                        score.value ? short_number(*score.value) : "undefined");
    separator = ", ";
  }
  constexpr std::string_view kDone = "done";
  if (width < static_cast<int>(kDone.size())) return cut(std::string(kDone), width);
  return coloured(std::string(kDone), Colour::good, colour) +
         cut(reports::printable(text), width - static_cast<int>(kDone.size()));
}

// Narrower terminals get only the summary line.
constexpr int kNarrowest = 60;
constexpr int kWidestBar = 40;

// Empty if there is no room for a bar.
std::string draw_share(const LiveShare& share, int width, bool colour) {
  if (width < kNarrowest || share.total <= 0) return {};
  const auto part = [&](std::int64_t trials) {
    return static_cast<double>(trials) / static_cast<double>(share.total);
  };
  // Rounded down, so that only a finished sweep shows 100 %.
  std::string after = fmt::format(" {:3.0f} %", std::floor(100 * part(share.done)));
  if (share.seconds_left) {
    after += fmt::format(", about {} left", orchestrator::duration_text(*share.seconds_left));
  }
  const int room = width - reports::display_width(after) - 1;
  const int bar = std::min(kWidestBar, room / 2);
  const std::string name = cut(reports::printable(share.sweep), room - bar);
  // Parts from the left: done, over without a result, remaining.
  const auto cells = [&](std::int64_t trials) {
    return static_cast<int>(std::floor(part(trials) * bar));
  };
  const int done = cells(share.done);
  const int over = std::max(cells(share.over), done);
  const auto repeated = [](const char* sign, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += sign;
    return text;
  };
  return name + " " + coloured(repeated("█", done), Colour::good, colour) +
         coloured(repeated("▒", over - done), Colour::bad, colour && over > done) +
         repeated("░", bar - over) + after;
}

// Nothing is truncated without a width.
std::vector<std::string> draw_failure(const LiveFailure& failure, std::optional<int> width,
                                      bool colour) {
  const auto fit = [&](const std::string& text) { return width ? cut(text, *width) : text; };
  std::vector<std::string> lines;
  std::string reason = failure.reason;
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const std::string id = failure.trial_id.substr(0, 8) + " ";
  const std::string state = reports::printable(failure.state);
  std::string head = fit(reports::printable(id + state + ": " + reason));
  if (head.starts_with(id + state)) {
    head = id + coloured(state, failure.state == "failed" ? Colour::bad : Colour::waiting, colour) +
           head.substr(id.size() + state.size());
  }
  lines.push_back(std::move(head));
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
  // The newest sweeps are last.
  if (summary.size() > most) {
    summary.erase(summary.begin(), summary.begin() + static_cast<int>(summary.size() - most));
  }
  constexpr std::size_t kLowest = 6;
  if (picture.share && most >= kLowest) {
    std::string bar = draw_share(*picture.share, width, picture.colour);
    if (!bar.empty()) summary.insert(summary.begin(), std::move(bar));
  }
  most -= summary.size();
  if (!picture.running.empty() && most >= 2) {
    std::vector<std::string> rows = draw_rows(picture.running, width, picture.colour);
    if (rows.size() > most) {
      const std::size_t kept = most - 1;
      const std::size_t left_out = rows.size() - kept;
      rows.resize(kept);
      rows.push_back(cut(fmt::format("… and {} more running", left_out), width));
    }
    lines = std::move(rows);
  }
  // The newest failures that fit, in chronological order.
  std::vector<std::vector<std::string>> failures;
  std::size_t room = most - lines.size();
  std::size_t shown = 0;
  for (auto failure = picture.failures.rbegin(); failure != picture.failures.rend(); ++failure) {
    std::vector<std::string> drawn =
        draw_failure(*failure, height > 0 ? std::optional(width) : std::nullopt, picture.colour);
    const bool others = picture.failures.size() > shown + 1;
    if (drawn.size() + (others ? 1 : 0) > room)
      drawn.resize(std::min<std::size_t>(drawn.size(), 1));
    if (drawn.size() + (others ? 1 : 0) > room) break;
    room -= drawn.size();
    failures.push_back(std::move(drawn));
    ++shown;
  }
  const bool earlier = shown < picture.failures.size() && room > 0;
  if (earlier) --room;
  const std::size_t results = std::min(picture.results.size(), room);
  for (std::size_t i = picture.results.size() - results; i < picture.results.size(); ++i) {
    lines.push_back(draw_result(picture.results[i], width, picture.colour));
  }
  if (earlier) {
    lines.push_back(
        cut(fmt::format("{} earlier failures", picture.failures.size() - shown), width));
  }
  for (auto failure = failures.rbegin(); failure != failures.rend(); ++failure) {
    lines.insert(lines.end(), failure->begin(), failure->end());
  }
  lines.insert(lines.end(), summary.begin(), summary.end());
  return lines;
}

}  // namespace petlab::cli
