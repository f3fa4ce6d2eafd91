#include "exports/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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

struct Point {
  std::string tag;
  std::int64_t step = 0;
  double time = 0;
  std::optional<double> value;
};

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
      found.losses.push_back({"train/loss", progress->step, event.time, progress->loss});
    }
  }
  return found;
}

// Makes a name usable as one part of a path and of TensorBoard's run name. Names too long for a
// file system are cut and get a digest to keep them distinct.
std::string folder_name(const std::string& name) {
  std::string folder;
  for (const unsigned char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !folder.empty());
    folder += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  constexpr std::size_t kLongest = 200;
  if (folder.size() > kLongest) {
    folder.resize(kLongest - 16);
    folder += "~" + base::sha256(name).substr(std::string_view("sha256:").size(), 12);
  }
  return folder;
}

RunEnd end_of(const TrialFacts& facts) {
  if (facts.result_attempt) return RunEnd::success;
  if (facts.attempts.back().outcome == results::Outcome::open) return RunEnd::running;
  return results::has_failed(facts) ? RunEnd::failure : RunEnd::unknown;
}

class TensorboardWriter {
 public:
  TensorboardWriter(const fs::path& folder, const TensorboardRequest& request)
      : folder_(folder), request_(request) {}

  TensorboardRuns write() {
    for (const std::string& sweep : request_.sweeps) {
      request_.reader.each_member(
          sweep, [&](const results::SweepRow::Member& member, const results::TrialRow& trial,
                     const TrialFacts& facts) { write_run(sweep, member, trial, facts); });
    }
    return done_;
  }

 private:
  std::vector<Point> points_of(const TrialFacts& facts, const std::vector<Counted>& attempts) {
    std::vector<Point> points;
    std::map<std::int64_t, EventTimes> times;
    bool events = false;
    for (const Counted& one : attempts) {
      const protocol::TrialDirectory directory(request_.runs, facts.trial_id,
                                               one.attempt->attempt.number);
      EventTimes& read = times[one.attempt->attempt.number] =
          read_times(directory.events(), one.to);
      events = events || !read.by_seq.empty();
      points.insert(points.end(), read.losses.begin(), read.losses.end());
    }
    if (!events) ++done_.without_events;
    for (const results::SeriesName& series : request_.scores.series_of(facts.trial_id)) {
      for (const results::HistoryPoint& point : request_.scores.history(facts.trial_id, series)) {
        const auto& by_seq = times[point.attempt].by_seq;
        const auto reported = by_seq.find(point.seq);
        const AttemptFacts* attempt = attempt_numbered(facts, point.attempt);
        const double over =
            attempt == nullptr ? 0 : attempt->ended_at.value_or(attempt->begun.time);
        points.push_back({fmt::format("{}/{}/{}", series.split, series.task, series.name),
                          point.step, reported == by_seq.end() ? over : reported->second,
                          point.value});
      }
    }
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
      return std::tie(a.time, a.step) < std::tie(b.time, b.step);
    });
    return points;
  }

  void write_run(const std::string& sweep, const results::SweepRow::Member& member,
                 const results::TrialRow& trial, const TrialFacts& facts) {
    const std::vector<Counted> attempts = counted_attempts(facts);
    if (attempts.empty()) return;
    const std::vector<Point> points = points_of(facts, attempts);
    if (points.empty()) return;
    fs::path folder = folder_ / folder_name(sweep);
    if (!member.variant.empty()) folder /= folder_name(member.variant);
    folder /= folder_name(member.trial_id);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw base::Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
    }
    const double begun = attempts.back().attempt->begun.time;
    const AttemptFacts& last = *attempts.front().attempt;
    EventFile file(folder / fmt::format("events.out.tfevents.{:.0f}.petlab", begun), begun);
    file.begin_run(request_.hparams(trial, member.variant), begun);
    for (const Point& point : points) {
      file.scalar(point.tag, point.step, point.time, point.value);
    }
    file.end_run(end_of(facts), last.ended_at.value_or(points.back().time));
    file.close();
    ++done_.runs;
    done_.values += std::ssize(points);
  }

  const fs::path& folder_;
  const TensorboardRequest& request_;
  TensorboardRuns done_;
};

}  // namespace

TensorboardRuns write_tensorboard(const fs::path& folder, const TensorboardRequest& request) {
  return TensorboardWriter(folder, request).write();
}

}  // namespace petlab::exports
