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

/// A metric on a task and split. Each name is stored once per database.
struct SeriesName {
  std::int64_t key = 0;
  std::string split, task, name;
};

/// Selects values of trials.
struct ScoreQuestion {
  std::vector<Word> fields;  ///< the fields of each row; no words of scores
  std::vector<Condition> where;
  std::vector<std::string> metrics;                            ///< names; empty: all
  std::vector<std::string> splits;                             ///< empty: all
  std::function<bool(const SeriesName& series)> wants_series;  ///< a further restriction, or empty
  /// The value of each metric that counts (Score::counts), or all values of a trial's result.
  enum class Steps { selected, every };
  Steps steps = Steps::selected;
  /// How often a trial occurs if `fields` includes the sweep or variant: once for each, or once
  /// with the names joined by ", ".
  enum class Members { apart, joined };
  Members members = Members::apart;
  /// Whether to read ScoredTrial's configuration, which takes most of the time.
  bool configurations = true;
};

/// A value of a trial.
struct Score {
  const SeriesName* series = nullptr;
  std::int64_t step = 0;
  std::optional<double> value;  ///< absent if undefined
  /// True for the value at the selected step: the step of the test score reported last. If the
  /// trial has no test score, or the metric was not reported at that step, true for its last value.
  /// All answers show these values unless they are asked for steps.
  bool counts = true;
};

/// One trial; valid during the call.
struct ScoredTrial {
  std::int64_t key = 0;  ///< meaningless outside the database
  const std::string& trial_id;
  std::span<const Value> fields;
  /// Trials with equal numbers (from 0) have the same configuration, ignoring seeds.
  std::uint32_t configuration = 0;
  /// The values of configuration_words(), set only when this number occurs first.
  std::span<const Value> configuration_values;
  const std::string& tasks;  ///< joined by commas
  bool has_result = false;
  bool stopped_early = false;  ///< by a rule of its sweep, so it has no result
  /// Reads the trial's scores by series, and then by step if all steps are selected.
  const std::function<std::span<const Score>()>& scores;
};

/// Splits a list joined by commas.
std::vector<std::string> listed(std::string_view joined);

/// The words of a trial's configuration except `tasks` and `seed`, in the order of
/// sweeps::fields(), followed by `user`.
const std::vector<Word>& configuration_words();

/// A value of one metric; sorted by step.
struct HistoryPoint {
  std::int64_t attempt = 0;
  std::int64_t seq = 0;
  std::int64_t step = 0;
  std::optional<double> value;
  bool counts = false;  ///< as Score::counts; without a result, true for the last value
};

/// A result's artifact and steps.
struct ArtifactPlace {
  std::int64_t attempt = 0;
  std::string path;                           ///< relative to its folder; empty: none
  std::optional<std::int64_t> selected_step;  ///< of the test score reported last
  std::optional<std::int64_t> last_step;
  std::optional<double> train_seconds;
};

class Reader;

/// Answers questions about results without reading all metrics. Throws results::Error, as Reader.
class ScoreReader {
 public:
  explicit ScoreReader(const std::filesystem::path& database);
  /// Shares the database connection of `reader`.
  explicit ScoreReader(const Reader& reader);
  ~ScoreReader();
  ScoreReader(ScoreReader&&) noexcept;
  ScoreReader& operator=(ScoreReader&&) noexcept;

  /// Calls `take` for each selected trial in the order of recording: once, or once per sweep and
  /// variant (Members::apart). A score counts if its task is one of the trial's, or no trial's;
  /// scores of other trials' tasks are omitted.
  void each(const ScoreQuestion& question,
            const std::function<void(const ScoredTrial&)>& take) const;
  /// All splits, tasks and metrics ever reported, by name.
  std::vector<SeriesName> series() const;
  /// The series that a question selects, regardless of the trials that reported them.
  std::vector<SeriesName> series_for(const ScoreQuestion& question) const;
  /// At most `limit` distinct values of a word, as text, sorted. For words of scores, those
  /// reported.
  std::vector<std::string> values_of(const Word& word, int limit) const;
  /// The values of one metric in a trial's result, including the attempts that it resumed from;
  /// without a result, those of the last attempt. Sorted by step, then by order of reporting.
  std::vector<HistoryPoint> history(const std::string& trial_id, const SeriesName& series) const;
  /// The series that a trial reported in its result's attempts, or else in its last attempt, by
  /// name.
  std::vector<SeriesName> series_of(const std::string& trial_id) const;
  /// std::nullopt if the trial has no result.
  std::optional<ArtifactPlace> artifact(const std::string& trial_id) const;

 private:
  friend class OneState;
  explicit ScoreReader(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
};

}  // namespace petlab::results
