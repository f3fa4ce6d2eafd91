#include "exports/trackio.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace petlab::exports {
namespace {

// The tables that trackio reads first (trackio/sqlite_storage.py). When it opens the file, it adds
// its other tables and indices.
constexpr const char* kTrackioTables =
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, "
    "metrics TEXT NOT NULL);"
    "CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));";

// Names with another meaning for trackio (SQLiteStorage.validate_project_name).
constexpr std::string_view kReservedBegin = "registry-";
constexpr std::string_view kReservedEnds[] = {"_system",
                                              "_configs",
                                              "_traces",
                                              "_artifacts",
                                              "_artifact_versions",
                                              "_artifact_aliases",
                                              "_run_artifact_links",
                                              "_external_run_artifact_links"};
constexpr std::size_t kLongestProjectName = 200;

std::string project_name(const std::string& sweep) {
  const bool reserved = sweep.starts_with(kReservedBegin) ||
                        std::any_of(std::begin(kReservedEnds), std::end(kReservedEnds),
                                    [&](std::string_view end) { return sweep.ends_with(end); });
  // A character that restricted_name replaces gives such a name a digest.
  return restricted_name(reserved ? "sweep-" + sweep + "." : sweep, "-_", kLongestProjectName);
}

std::string iso_time(double seconds) {
  const double whole = std::floor(seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06d}+00:00",
                     fmt::gmtime(static_cast<std::time_t>(whole)),
                     static_cast<int>((seconds - whole) * 1e6));
}

}  // namespace

class TrackioWriter::Project {
 public:
  Project(const std::filesystem::path& folder, const std::string& sweep) : sweep_(sweep) {
    file_ = folder / (project_name(sweep) + ".db");
    guard([&] {
      database_.emplace(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      // The file gets its final name when it is complete, and is created again after a crash.
      database_->exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
      database_->exec(kTrackioTables);
      metrics_.emplace(*database_,
                       "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES "
                       "(?, ?, ?, ?, ?)");
      configs_.emplace(*database_,
                       "INSERT INTO configs (run_id, run_name, config, created_at) VALUES "
                       "(?, ?, ?, ?)");
    });
  }

  const std::string& sweep() const { return sweep_; }

  void write(const Run& run) {
    const std::string id = run.id();
    const std::string title = run.title();
    nlohmann::ordered_json config;
    for (const auto& [name, value] : run.parameters) config[name] = value;
    for (const auto& [name, value] : run.facts()) config[name] = value;
    config["_Created"] = iso_time(run.begun);
    config["_Group"] = run.variant;
    guard([&] {
      SQLite::bind(*configs_, id, title, json_text(config), iso_time(run.begun));
      configs_->exec();
      configs_->reset();
      for (const Row& row : rows_of(run)) {
        nlohmann::ordered_json values;
        const auto insert = [&] {
          SQLite::bind(*metrics_, id, iso_time(row.time), title, row.step, json_text(values));
          metrics_->exec();
          metrics_->reset();
          values.clear();
        };
        for (const Point* point : row.points) {
          const std::string tag = point->tag();
          if (values.contains(tag)) insert();  // a second value of the metric
          // Trackio's text for a number that JSON lacks.
          values[tag] =
              point->value ? nlohmann::ordered_json(*point->value) : nlohmann::ordered_json("NaN");
        }
        insert();
      }
    });
  }

  void close() {
    guard([&] {
      database_->exec("COMMIT");
      metrics_.reset();
      configs_.reset();
      database_.reset();
    });
  }

 private:
  template <typename Body>
  void guard(Body&& body) {
    try {
      body();
    } catch (const SQLite::Exception& error) {
      throw base::Error(fmt::format("{}: cannot be written: {}", file_.string(), error.what()));
    }
  }

  std::string sweep_;
  std::filesystem::path file_;
  std::optional<SQLite::Database> database_;
  std::optional<SQLite::Statement> metrics_, configs_;
};

TrackioWriter::TrackioWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}
TrackioWriter::~TrackioWriter() = default;

void TrackioWriter::write(const Run& run) {
  if (run.points.empty()) return;  // trackio shows no run without values
  if (project_ == nullptr || project_->sweep() != run.sweep) {
    close();
    project_ = std::make_unique<Project>(folder_, run.sweep);
  }
  project_->write(run);
  count(run);
}

void TrackioWriter::close() {
  if (project_ == nullptr) return;
  project_->close();
  project_.reset();
}

}  // namespace petlab::exports
