#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/dataset.h"

namespace petlab::reports {

struct Report;

/// What a page tells of an attempt. Texts are as they were reported: printable() is the renderer's.
struct AttemptRecord {
  std::int64_t number = 1;
  std::string outcome;             // a word of results::Outcome
  std::string reason;              // why it ended so; empty: nobody said
  std::string host;                // and
  std::string device;              // where it ran
  std::string worker;              // with its version
  std::optional<double> begun_at;  // seconds since 1970
  std::optional<double> seconds;   // until it ended
  std::vector<std::string> log;    // its last lines, printable; empty: none at hand
};

/// A metric of one trial over steps, those of the attempts that count.
struct LearningCurve {
  std::string split;
  std::string task;
  std::string name;
  std::vector<std::pair<std::int64_t, double>> points;  // (step, value), ascending, at least two
};

/// What a page tells of a trial that a cell was made from.
struct TrialRecord {
  std::string id;
  std::string state;
  std::string variant;               // of the first sweep that names it
  std::vector<std::string> members;  // "sweep: variant", each sweep and variant that names it
  std::map<std::string, std::string> fields;  // of its configuration, tasks and seed among them
  std::vector<AttemptRecord> attempts;        // by number
  std::vector<LearningCurve> curves;
};

/// The trials that cells of the report were made from or wait for, each once, in the order of the
/// cells. Without curves, and with those last lines of logs that the database has.
std::vector<TrialRecord> trial_records(const Report& report, const Dataset& data);

/// The end of an attempt's log, some kilobytes; empty where it is not at hand.
using LogEnd = std::function<std::string(const std::string& trial_id, std::int64_t attempt)>;

/// What a page has room for; what is beyond it is left out, whole trials at a time.
struct PageRoom {
  std::int64_t metric_rows = 100'000;  // that curves are made from
  std::size_t log_bytes = std::size_t{1} << 20;
  static constexpr std::size_t kCurvePoints = 100;  // a curve is thinned to
  static constexpr std::size_t kLogLines = 12;      // of an attempt
};

/// Reads the last lines of each trial's last attempt, unless that has finished.
void add_logs(std::vector<TrialRecord>& records, const LogEnd& log_end, const PageRoom& room = {});

/// Reads the learning curves of the trials in two queries, those of the first trials where there is
/// no room for all. Throws results::Error for a database that cannot be read.
void add_curves(std::vector<TrialRecord>& records, const std::filesystem::path& database,
                const PageRoom& room = {});

/// JSON for the page's script (docs/reports.md does not promise it): `same`, the fields that are
/// equal in all trials; `configurations`, the different ones of the others but the seed; `attempt`,
/// what attempts say that say nothing else; `trials` by id, each with its seed and the place of its
/// configuration.
std::string trials_json(const std::vector<TrialRecord>& records);

}  // namespace petlab::reports
