#include "results/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "results/connection.h"
#include "results/schema.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;

/// Merges two adjacent points, at the position of the later one.
LossPoint together(const LossPoint& earlier, const LossPoint& later) {
  LossPoint both = later;
  both.steps = earlier.steps + later.steps;
  both.reports = earlier.reports + later.reports;
  if (earlier.loss && later.loss) {
    const double share = static_cast<double>(later.steps) / static_cast<double>(both.steps);
    const double mean = *earlier.loss + (*later.loss - *earlier.loss) * share;
    both.loss = std::isfinite(mean) ? std::optional(mean) : std::nullopt;
  } else {
    both.loss.reset();
  }
  return both;
}

LossPoint point_from(const Query& row) {
  return {0, row.integer(1), row.integer(2), row.integer(3), row.integer(4), row.maybe_real(5)};
}

/// The last points of an attempt. Earlier stored points are full, and are read only to be merged.
class CurveTail {
 public:
  CurveTail(Connection& connection, std::int64_t attempt)
      : connection_(connection), attempt_(attempt) {
    Query last(connection,
               "SELECT place, seq, step, steps, reports, loss FROM loss_points WHERE attempt = ?1 "
               "ORDER BY place DESC LIMIT 1");
    if (last.with(attempt).step()) {
      begin_ = last.integer(0);
      points_.push_back(point_from(last));
      step_ = points_.back().step;
      // Only the last point can have fewer reports than the others.
      Query first(connection, "SELECT reports FROM loss_points WHERE attempt = ?1 AND place = 0");
      if (first.with(attempt).step()) stride_ = first.integer(0);
    } else {
      // Earlier steps: those of the resumed attempt, or events read by a petlab that stored no
      // points.
      Query before(connection,
                   "SELECT coalesce((SELECT step FROM progress WHERE attempt = ?1), (SELECT "
                   "resume_step FROM attempts WHERE key = ?1), 0)");
      if (before.with(attempt).step()) step_ = before.integer(0);
    }
  }

  void add(const LossReport& report) {
    LossPoint point{0, report.seq, report.step, std::max<std::int64_t>(1, report.step - step_),
                    1, report.loss};
    step_ = report.step;
    if (!points_.empty() && points_.back().reports < stride_) {
      points_.back() = together(points_.back(), point);
      return;
    }
    if (begin_ + static_cast<std::int64_t>(points_.size()) == kMostLossPoints) halve();
    // After halving, all points are full, because their number was even.
    points_.push_back(point);
  }

  void store() {
    if (halved_) {
      Query(connection_, "DELETE FROM loss_points WHERE attempt = ?1").with(attempt_).run();
    }
    Query insert(connection_,
                 "INSERT OR REPLACE INTO loss_points (attempt, place, seq, step, steps, reports, "
                 "loss) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    std::int64_t place = begin_;
    for (const LossPoint& point : points_) {
      insert.with(attempt_)
          .with(place++)
          .with(point.seq)
          .with(point.step)
          .with(point.steps)
          .with(point.reports)
          .with(point.loss)
          .run();
      insert.again();
    }
  }

 private:
  void halve() {
    if (begin_ > 0) {
      std::vector<LossPoint> all;
      Query rows(connection_,
                 "SELECT place, seq, step, steps, reports, loss FROM loss_points WHERE attempt = "
                 "?1 AND place < ?2 ORDER BY place");
      rows.with(attempt_).with(begin_);
      while (rows.step()) all.push_back(point_from(rows));
      points_.insert(points_.begin(), all.begin(), all.end());
      begin_ = 0;
    }
    std::vector<LossPoint> half;
    for (std::size_t i = 0; i + 1 < points_.size(); i += 2) {
      half.push_back(together(points_[i], points_[i + 1]));
    }
    points_ = std::move(half);
    stride_ *= 2;
    halved_ = true;
  }

  Connection& connection_;
  const std::int64_t attempt_;
  std::vector<LossPoint> points_;
  std::int64_t begin_ = 0;   // place of the first point
  std::int64_t stride_ = 1;  // number of reports in a full point
  std::int64_t step_ = 0;    // of the last report
  bool halved_ = false;
};

/// The part of an attempt needed for curves.
struct CurveAttempt {
  std::int64_t key = 0;
  std::int64_t number = 0;
  std::int64_t parent = 0;      // attempt number; 0 if none
  std::int64_t resume_seq = 0;  // last event of the parent that counts
  bool is_result = false;
};

CurveAttempt attempt_of(const Query& row, int first) {
  return {row.integer(first), row.integer(first + 1),
          row.is_null(first + 2) ? 0 : row.integer(first + 2),
          row.is_null(first + 3) ? 0 : row.integer(first + 3), row.integer(first + 4) != 0};
}

constexpr std::int64_t kAll = INT64_MAX;

/// Appends the points of an attempt up to event `to`, last first.
using PointsTo = std::function<void(const CurveAttempt&, std::int64_t to, std::vector<LossPoint>&)>;

/// `attempts` are sorted by number. Uses attempt `wanted` if given, else the result, else the last
/// attempt.
std::vector<LossPoint> points_of(const std::vector<CurveAttempt>& attempts, const PointsTo& add,
                                 std::optional<std::int64_t> wanted = {}) {
  const CurveAttempt* at = attempts.empty() || wanted ? nullptr : &attempts.back();
  for (const CurveAttempt& attempt : attempts) {
    if (wanted ? attempt.number == *wanted : attempt.is_result) at = &attempt;
  }
  std::vector<LossPoint> points;
  for (std::int64_t to = kAll; at != nullptr;) {
    add(*at, to, points);
    to = at->resume_seq;
    // A parent's number is always smaller, so the loop ends.
    const std::int64_t parent = std::min(at->parent, at->number - 1);
    const auto found =
        std::find_if(attempts.begin(), attempts.end(),
                     [&](const CurveAttempt& attempt) { return attempt.number == parent; });
    at = found == attempts.end() ? nullptr : &*found;
  }
  std::reverse(points.begin(), points.end());
  return points;
}

}  // namespace

void internal::append_losses(Connection& connection, std::int64_t attempt,
                             std::span<const LossReport> reports) {
  if (reports.empty()) return;
  CurveTail tail(connection, attempt);
  for (const LossReport& report : reports) tail.add(report);
  tail.store();
}

LossReader::LossReader(const std::filesystem::path& database)
    : connection_(std::make_shared<Connection>(database, Connection::Mode::read, OpenOptions())) {}
LossReader::~LossReader() = default;
LossReader::LossReader(LossReader&&) noexcept = default;
LossReader& LossReader::operator=(LossReader&&) noexcept = default;

std::vector<LossPoint> LossReader::of_trial(const std::string& trial_id,
                                            std::optional<std::int64_t> attempt) const {
  return internal::reading(*connection_, [&] {
    std::vector<CurveAttempt> attempts;
    Query rows(*connection_,
               "SELECT a.key, a.number, a.parent, a.resume_seq, a.key IS t.result_attempt FROM "
               "trials t JOIN attempts a ON a.trial = t.key WHERE t.trial_id = ?1 ORDER BY "
               "a.number");
    rows.with(trial_id);
    while (rows.step()) attempts.push_back(attempt_of(rows, 0));
    Query stored(
        *connection_,
        "SELECT place, seq, step, steps, reports, loss FROM loss_points WHERE attempt = ?1 AND "
        "seq <= ?2 ORDER BY place DESC");
    const auto add = [&](const CurveAttempt& at, std::int64_t to, std::vector<LossPoint>& points) {
      stored.with(at.key).with(to);
      while (stored.step()) {
        points.push_back(point_from(stored));
        points.back().attempt = at.number;
      }
      stored.again();
    };
    return points_of(attempts, add, attempt);
  });
}

void LossReader::each_of_sweep(const std::string& sweep,
                               const std::function<void(const TrialLosses&)>& take) const {
  internal::reading(*connection_, [&] {
    // By place in the sweep; a trial may have several variants.
    Query rows(
        *connection_,
        "SELECT t.trial_id, a.key, a.number, a.parent, a.resume_seq, a.key IS t.result_attempt, "
        "p.place, p.seq, p.step, p.steps, p.reports, p.loss FROM sweeps w CROSS JOIN (SELECT "
        "sweep, trial, min(place) AS place FROM sweep_trials GROUP BY sweep, trial ORDER BY "
        "3 LIMIT -1) m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial CROSS JOIN "
        "attempts a ON a.trial = t.key LEFT JOIN loss_points p ON p.attempt = a.key WHERE w.name = "
        "?1 AND NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key)");
    rows.with(sweep);
    TrialLosses trial;
    std::vector<CurveAttempt> attempts;
    std::map<std::int64_t, std::vector<LossPoint>> stored;  // by attempt, in order
    const auto add = [&](const CurveAttempt& at, std::int64_t to, std::vector<LossPoint>& points) {
      const std::vector<LossPoint>& stored_points = stored[at.key];
      std::copy_if(stored_points.rbegin(), stored_points.rend(), std::back_inserter(points),
                   [&](const LossPoint& point) { return point.seq <= to; });
    };
    const auto end = [&] {
      std::sort(attempts.begin(), attempts.end(),
                [](const CurveAttempt& a, const CurveAttempt& b) { return a.number < b.number; });
      trial.points = points_of(attempts, add);
      if (!trial.points.empty()) take(trial);
      attempts.clear();
      stored.clear();
    };
    while (rows.step()) {
      if (trial.trial_id != rows.text(0)) {
        end();
        trial.trial_id = rows.text(0);
      }
      const CurveAttempt attempt = attempt_of(rows, 1);
      if (attempts.empty() || attempts.back().key != attempt.key) attempts.push_back(attempt);
      if (rows.is_null(6)) continue;
      std::vector<LossPoint>& stored_points = stored[attempt.key];
      stored_points.push_back({attempt.number, rows.integer(7), rows.integer(8), rows.integer(9),
                               rows.integer(10), rows.maybe_real(11)});
    }
    end();
  });
}

}  // namespace petlab::results
