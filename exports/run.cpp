#include "exports/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "protocol/events.h"
#include "protocol/trial_directory.h"

namespace petlab::exports {
namespace {

namespace fs = std::filesystem;
using results::AttemptFacts;
using results::TrialFacts;

std::string hex_digest(std::string_view text, std::size_t digits) {
  return base::sha256(text).substr(std::string_view("sha256:").size(), digits);
}

/// An attempt that contributes to the result, up to one of its events.
struct Counted {
  const AttemptFacts* attempt = nullptr;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

const AttemptFacts* attempt_numbered(const TrialFacts& facts, std::int64_t number) {
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == number) return &attempt;
  }
  return nullptr;
}

// The attempt of the result, else the last attempt, and the attempts it resumed from.
std::vector<Counted> counted_attempts(const TrialFacts& facts) {
  std::vector<Counted> found;
  if (facts.attempts.empty()) return found;
  const AttemptFacts* attempt = facts.result_attempt
                                    ? attempt_numbered(facts, *facts.result_attempt)
                                    : &facts.attempts.back();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  while (attempt != nullptr) {
    found.push_back({attempt, to});
    const auto& resume = attempt->begun.resume;
    if (!resume || resume->attempt >= attempt->attempt.number) break;
    to = resume->seq;
    attempt = attempt_numbered(facts, resume->attempt);
  }
  return found;
}

constexpr std::uintmax_t kMostEvents = std::uintmax_t{4} << 30;  // bytes

// Data from an attempt's events that the database lacks: event times and the loss.
struct EventTimes {
  std::map<std::int64_t, double> by_seq;
  std::vector<Point> losses;
};
EventTimes read_times(const fs::path& file, std::int64_t to) {
  EventTimes found;
  std::istringstream in(base::read_file_if_any(file, kMostEvents).value_or(""));
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    protocol::Event event;
    try {
      event = protocol::parse_event(line);
    } catch (const std::runtime_error&) {
      break;  // later events do not count
    }
    if (event.seq > to) break;
    found.by_seq[event.seq] = event.time;
    if (const auto* progress = std::get_if<protocol::Progress>(&event.body)) {
      found.losses.push_back({"train", "", "loss", progress->step, event.time, progress->loss});
    }
  }
  return found;
}

RunEnd end_of(const TrialFacts& facts, const std::string& state) {
  if (facts.result_attempt) return RunEnd::success;
  if (state == "running") return RunEnd::running;
  return state == "failed" ? RunEnd::failure : RunEnd::unknown;
}

/// Sets the points of a run. Returns false if no attempt has events.
bool read_points(const RunRequest& request, const TrialFacts& facts,
                 const std::vector<Counted>& attempts, std::vector<Point>& points) {
  std::map<std::int64_t, EventTimes> times;
  bool events = false;
  for (const Counted& one : attempts) {
    const std::int64_t number = one.attempt->attempt.number;
    const protocol::TrialDirectory directory(request.runs, facts.trial_id, number);
    EventTimes& read = times[number] = read_times(directory.events(), one.to);
    events = events || !read.by_seq.empty();
    points.insert(points.end(), read.losses.begin(), read.losses.end());
  }
  for (const results::SeriesName& series : request.scores.series_of(facts.trial_id)) {
    for (const results::HistoryPoint& point : request.scores.history(facts.trial_id, series)) {
      const auto& by_seq = times[point.attempt].by_seq;
      const auto reported = by_seq.find(point.seq);
      const AttemptFacts* attempt = attempt_numbered(facts, point.attempt);
      const double over = attempt == nullptr ? 0 : attempt->ended_at.value_or(attempt->begun.time);
      points.push_back({series.split, series.task, series.name, point.step,
                        reported == by_seq.end() ? over : reported->second, point.value});
    }
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.time, a.step) < std::tie(b.time, b.step);
  });
  return events;
}

}  // namespace

std::string text_of(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Point::tag() const {
  return task.empty() ? split + "/" + name : fmt::format("{}/{}/{}", split, task, name);
}

std::string Run::title() const { return variant.empty() ? trial : variant + " " + trial; }

std::string Run::id() const { return hex_digest(nlohmann::json{sweep, variant, trial}.dump(), 32); }

std::vector<std::pair<std::string, std::string>> Run::facts() const {
  std::vector<std::pair<std::string, std::string>> known = {
      {"petlab.sweep", sweep}, {"petlab.variant", variant},
      {"petlab.trial", trial}, {"petlab.attempt", std::to_string(attempt)},
      {"petlab.state", state}, {"petlab.host", host},
  };
  std::erase_if(known, [](const auto& fact) { return fact.second.empty(); });
  return known;
}

std::vector<Row> rows_of(const Run& run) {
  std::vector<const Point*> points;
  for (const Point& point : run.points) points.push_back(&point);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point* a, const Point* b) { return a->step < b->step; });
  std::vector<Row> rows;
  for (const Point* point : points) {
    if (rows.empty() || rows.back().step != point->step) rows.push_back({point->step, 0, {}});
    rows.back().time = point->time;
    rows.back().points.push_back(point);
  }
  return rows;
}

void RunWriter::count(const Run& run) {
  ++exported_.runs;
  exported_.values += std::ssize(run.points);
}

std::int64_t each_run(const RunRequest& request, const std::function<void(const Run&)>& take) {
  std::int64_t without_events = 0;
  for (const std::string& sweep : request.sweeps) {
    request.reader.each_member(sweep, [&](const results::SweepRow::Member& member,
                                          const results::TrialRow& trial, const TrialFacts& facts) {
      const std::vector<Counted> attempts = counted_attempts(facts);
      if (attempts.empty()) return;
      const AttemptFacts& last = *attempts.front().attempt;
      Run run;
      run.sweep = sweep;
      run.variant = member.variant;
      run.trial = member.trial_id;
      run.attempt = last.attempt.number;
      run.host = last.launch && !last.launch->host.empty() ? last.launch->host : last.begun.host;
      run.state = request.state(sweep, member);
      run.end = end_of(facts, run.state);
      run.begun = attempts.back().attempt->begun.time;
      run.parameters = request.parameters(trial);
      if (!read_points(request, facts, attempts, run.points)) ++without_events;
      if (run.end != RunEnd::running) {
        run.ended = last.ended_at.value_or(run.points.empty() ? run.begun : run.points.back().time);
      }
      take(run);
    });
  }
  return without_events;
}

std::string restricted_name(std::string_view name, std::string_view also, std::size_t longest) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       also.find(c) != std::string_view::npos;
    result += plain ? c : '_';
  }
  if (result == name && !name.empty() && name != "." && name != ".." && name.size() <= longest) {
    return result;
  }
  constexpr std::size_t kDigits = 12;
  if (result.find_first_not_of('.') == std::string::npos) result = "_";
  result.resize(std::min(result.size(), longest - kDigits - 1));
  return result + "-" + hex_digest(name, kDigits);
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  }
}

void write_new_file(const fs::path& file, std::string_view content) {
  make_folders(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out) {
    throw base::Error(fmt::format("{}: cannot be written; is the disk full?", file.string()));
  }
}

}  // namespace petlab::exports
