#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/scores.h"
#include "results/store.h"

namespace petlab::exports {

/// A field of a trial's configuration: its name with dots, and a value that is not null.
using Parameter = std::pair<std::string, nlohmann::ordered_json>;

/// JSON on one line. Bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& value);
/// A parameter's value as text: a text as it is, anything else as JSON.
std::string text_of(const nlohmann::ordered_json& value);

/// A value that a trial reported.
struct Point {
  std::string split, task, name;  // the loss of progress events: train, empty, loss
  std::int64_t step = 0;
  double time = 0;              // seconds since 1970
  std::optional<double> value;  // absent: undefined

  /// SPLIT/TASK/METRIC, or train/loss.
  std::string tag() const;
};

/// How a run ended. The numbers are those of TensorBoard (hparams' api.proto, Status).
enum class RunEnd { unknown = 0, success = 1, failure = 2, running = 3 };

/// A trial as a member of a sweep, with the values of its result, else of its last attempt.
struct Run {
  std::string sweep, variant, trial;
  std::int64_t attempt = 0;  // whose values these are
  std::string host;
  std::string state;  // a name of sweeps/trial_state.h
  RunEnd end = RunEnd::unknown;
  double begun = 0;             // seconds since 1970
  std::optional<double> ended;  // absent while it runs
  std::vector<Parameter> parameters;
  std::vector<Point> points;  // by time, then step

  /// "VARIANT TRIAL", or TRIAL.
  std::string title() const;
  /// 32 hexadecimal digits that depend only on sweep, variant and trial.
  std::string id() const;
  /// What is not part of the configuration, as texts: petlab.sweep, petlab.variant, petlab.trial,
  /// petlab.attempt, petlab.state and petlab.host. Unknown ones are missing.
  std::vector<std::pair<std::string, std::string>> facts() const;
};

/// The points of one step, in the order in which they were reported.
struct Row {
  std::int64_t step = 0;
  double time = 0;  // of the last point
  std::vector<const Point*> points;
};
/// The points of a run, by step.
std::vector<Row> rows_of(const Run& run);

/// The number of exported runs and values.
struct Exported {
  std::int64_t runs = 0;
  std::int64_t values = 0;
};

/// Writes runs in the format of a tool. Throws base::Error for a file that cannot be written.
class RunWriter {
 public:
  virtual ~RunWriter() = default;
  /// Called for the runs of each sweep, one sweep after the other.
  virtual void write(const Run& run) = 0;
  /// Called after the last run.
  virtual void close() {}
  const Exported& exported() const { return exported_; }

 protected:
  void count(const Run& run);

 private:
  Exported exported_;
};

/// The data to export and its sources.
struct RunRequest {
  const results::Reader& reader;
  const results::ScoreReader& scores;  // for the same state of the database
  /// The runs folder. If the events of an attempt exist, values get the times at which they were
  /// reported, and the loss is exported.
  std::filesystem::path runs;
  std::vector<std::string> sweeps;  ///< names
  std::function<std::vector<Parameter>(const results::TrialRow&)> parameters;
  /// The state of a sweep's member.
  std::function<std::string(const std::string& sweep, const results::SweepRow::Member&)> state;
};

/// Calls `take` with each trial of the sweeps that has attempts, once for each of its sweeps and
/// variants. Hidden trials are omitted. Returns the number of runs without events, whose values
/// have the times of their attempts. Throws base::Error for events that cannot be read.
std::int64_t each_run(const RunRequest& request, const std::function<void(const Run&)>& take);

/// A name with only ASCII letters, digits and characters of `also`, at most `longest` bytes long.
/// Other characters become "_". A changed name ends with "-" and twelve digits of its digest, so
/// that different names stay different. "." and ".." are changed.
std::string restricted_name(std::string_view name, std::string_view also, std::size_t longest);

/// Creates a folder, and those above it, if missing. Throws base::Error.
void make_folders(const std::filesystem::path& folder);

/// Writes a new file, and its folder if necessary. Throws base::Error.
void write_new_file(const std::filesystem::path& file, std::string_view content);

}  // namespace petlab::exports
