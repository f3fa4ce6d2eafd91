#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/condition.h"
#include "results/query.h"
#include "results/words.h"

namespace petlab::results {

namespace internal {
class Connection;
}

/// What a metric's value is of; names are stored once in a database.
struct SeriesName {
  std::int64_t key = 0;
  std::string split, task, name;
};

/// Which values are wanted of which trials.
struct ScoreQuestion {
  std::vector<Word> fields;  ///< what each trial's row has; no score's
  std::vector<Condition> where;
  std::vector<std::string> metrics;                            ///< names; empty: all
  std::vector<std::string> splits;                             ///< empty: all
  std::function<bool(const SeriesName& series)> wants_series;  ///< a further restriction, or empty
  /// The value of each metric that counts (Score::counts), or every value of a trial's result.
  enum class Steps { selected, every };
  Steps steps = Steps::selected;
  /// How often a trial is given if `fields` has the sweep or the variant: once for each, or once
  /// with their names joined by ", ".
  enum class Members { apart, joined };
  Members members = Members::apart;
  /// Whether ScoredTrial has the configuration, which takes most of the time.
  bool configurations = true;
};

/// A value of a trial.
struct Score {
  const SeriesName* series = nullptr;
  std::int64_t step = 0;
  std::optional<double> value;  ///< absent: undefined
  /// The value at the selected step: the step of the test score that the trial reported last. Where
  /// the trial has no test score, and where the metric was not reported at that step, the value
  /// that was reported last. Every answer shows these values, unless it asks for steps.
  bool counts = true;
};

/// One trial. Valid during the call.
struct ScoredTrial {
  std::int64_t key = 0;  ///< means nothing outside the database
  const std::string& trial_id;
  std::span<const Value> fields;
  /// From 0: trials with the same number have the same configuration, but perhaps for seeds.
  std::uint32_t configuration = 0;
  /// The values of configuration_words(); not empty where the number comes for the first time.
  std::span<const Value> configuration_values;
  const std::string& tasks;  ///< joined by commas
  bool has_result = false;
  /// Reads the trial's scores: by series; with every step then by step, as reported.
  const std::function<std::span<const Score>()>& scores;
};

/// What such a list holds.
std::vector<std::string> listed(std::string_view joined);

/// The words of a trial's configuration but for `tasks` and `seed`, in the order of
/// sweeps::fields(), and last `user`.
const std::vector<Word>& configuration_words();

/// A value of one metric, in the order of steps.
struct HistoryPoint {
  std::int64_t attempt = 0;
  std::int64_t seq = 0;
  std::int64_t step = 0;
  std::optional<double> value;
  bool counts = false;  ///< as Score::counts; without a result, of the value reported last
};

/// What a result leads to.
struct ArtifactPlace {
  std::int64_t attempt = 0;
  std::string path;                           ///< relative to the attempt's folder; empty: none
  std::optional<std::int64_t> selected_step;  ///< of the test score reported last
  std::optional<std::int64_t> last_step;
  std::optional<double> train_seconds;
};

class Reader;

/// Answers what people ask of results, without reading every metric. Throws results::Error, as
/// Reader.
class ScoreReader {
 public:
  explicit ScoreReader(const std::filesystem::path& database);
  /// Reads the database that `reader` has open.
  explicit ScoreReader(const Reader& reader);
  ~ScoreReader();
  ScoreReader(ScoreReader&&) noexcept;
  ScoreReader& operator=(ScoreReader&&) noexcept;

  /// Calls `take` with each trial that the question is about, in the order in which they were
  /// recorded: once, or once for each sweep and variant (Members::apart). A score counts for the
  /// trial's own tasks and for tasks that no trial has; one for another trial's task is left out.
  void each(const ScoreQuestion& question,
            const std::function<void(const ScoredTrial&)>& take) const;
  /// Every split, task and metric that was ever reported, by name.
  std::vector<SeriesName> series() const;
  /// Those that a question asks for, whichever trials reported them.
  std::vector<SeriesName> series_for(const ScoreQuestion& question) const;
  /// The different values of a word, as text, by themselves; at most `limit`. Of scores, those that
  /// were reported.
  std::vector<std::string> values_of(const Word& word, int limit) const;
  /// The values of one metric of a trial's result, its resumed attempts included; without a result
  /// those of its last attempt. By step and then as they came.
  std::vector<HistoryPoint> history(const std::string& trial_id, const SeriesName& series) const;
  /// The series that a trial reported in the attempts of its result, else in its last, by name.
  std::vector<SeriesName> series_of(const std::string& trial_id) const;
  /// std::nullopt where the trial has no result.
  std::optional<ArtifactPlace> artifact(const std::string& trial_id) const;

 private:
  friend class OneState;
  explicit ScoreReader(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
};

}  // namespace petlab::results
