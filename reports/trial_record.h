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

/// The data of an attempt for pages. Texts are as reported; the renderer applies printable().
struct AttemptRecord {
  std::int64_t number = 1;
  std::string outcome;             // a word of results::Outcome
  std::string reason;              // why it ended; may be empty
  std::string host;                // host name
  std::string device;              // device on that host
  std::string worker;              // includes its version
  std::optional<double> begun_at;  // seconds since 1970
  std::optional<double> seconds;   // until it ended
  std::vector<std::string> log;    // its last lines, printable; empty if not available
};

/// A metric of one trial over steps, from the attempts that count.
struct LearningCurve {
  std::string split;
  std::string task;
  std::string name;
  std::vector<std::pair<std::int64_t, double>> points;  // (step, value), ascending, at least two
};

/// The data of a cell's trial for pages.
struct TrialRecord {
  std::string id;
  std::string state;
  std::string variant;               // in the first sweep that contains it
  std::vector<std::string> members;  // "sweep: variant" for each sweep and variant that contains it
  std::map<std::string, std::string> fields;  // of its configuration, including tasks and seed
  std::vector<AttemptRecord> attempts;        // by number
  std::vector<LearningCurve> curves;
};

/// The trials of the report's cells, including those still missing, without repeats and in the
/// order of the cells. Without curves; with the last log lines that the database contains.
std::vector<TrialRecord> trial_records(const Report& report, const Dataset& data);

/// Reads the end of an attempt's log, a few kilobytes; empty if not available.
using LogEnd = std::function<std::string(const std::string& trial_id, std::int64_t attempt)>;

/// Size limits of a page. Data of the trials beyond them is omitted, whole trials at a time.
struct PageRoom {
  std::int64_t metric_rows = 100'000;  // read for curves
  std::size_t log_bytes = std::size_t{1} << 20;
  static constexpr std::size_t kCurvePoints = 100;  // per curve, after thinning
  static constexpr std::size_t kLogLines = 12;      // per attempt
};

/// Reads the last log lines of each trial's last attempt, unless it has finished.
void add_logs(std::vector<TrialRecord>& records, const LogEnd& log_end, const PageRoom& room = {});

/// Reads the learning curves of the trials with two queries, only those of the first trials if not
/// all fit. Throws results::Error for an unreadable database.
void add_curves(std::vector<TrialRecord>& records, const std::filesystem::path& database,
                const PageRoom& room = {});

/// JSON for the page's script (not a public format): `same`, the fields that are equal in all
/// trials; `configurations`, the distinct values of the others except the seed; `attempt`, the
/// defaults for attempts; `trials` by id, each with its seed and the index of its configuration.
std::string trials_json(const std::vector<TrialRecord>& records);

}  // namespace petlab::reports
