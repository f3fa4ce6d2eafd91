#include "results/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/selected_values.h"
#include "results/snapshot.h"
#include "results/store.h"
#include "sweeps/fields.h"
#include "sweeps/vocabulary.h"

namespace petlab::results {
namespace {

using internal::all_series;
using internal::bind_all;
using internal::configuration_of_trial;
using internal::Connection;
using internal::expression;
using internal::Query;
using internal::reading;
using internal::Statement;
using internal::trials_of;
using internal::WantedSeries;

constexpr const char* kEveryValue =
    "SELECT v.series, v.step, v.value, EXISTS (SELECT 1 FROM selected_values c WHERE c.trial = ?1 "
    "AND c.series = v.series AND c.attempt = a.key AND c.seq = v.seq) FROM attempts a CROSS JOIN "
    "metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to WHERE a.trial = ?1 AND "
    "a.counts_to IS NOT NULL ORDER BY a.number, v.seq";

// True if the question selects a series, apart from conditions on trials.
bool is_wanted(const ScoreQuestion& question, const SeriesName& series) {
  const auto is_in = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  return (question.splits.empty() || is_in(question.splits, series.split)) &&
         (!question.wants_series || question.wants_series(series)) &&
         (question.metrics.empty() || is_in(question.metrics, series.name)) &&
         std::all_of(question.where.begin(), question.where.end(), [&](const Condition& condition) {
           return condition.word.scope != WordScope::score ||
                  holds(condition, condition.word.name == "task" ? series.task : series.name);
         });
}

// The key of a trial. Throws std::invalid_argument if it does not exist.
std::int64_t trial_named(Connection& connection, const std::string& trial_id) {
  Query row(connection, "SELECT key FROM trials WHERE trial_id = ?1");
  if (!row.with(trial_id).step()) {
    throw std::invalid_argument(fmt::format("there is no trial {}", trial_id));
  }
  return row.integer(0);
}

/// Numbers distinct configurations by their text without the seed. Rereading the fields of each
/// trial would take most of the time.
class Configurations {
 public:
  /// Returns the number, and whether it is new.
  std::pair<std::uint32_t, bool> number(std::string text) {
    // The first match is the trial's seed, because no unescaped quotes occur in the texts before
    // it.
    constexpr std::string_view kSeed = "\"seed\":";
    if (const std::size_t seed = text.find(kSeed); seed != std::string::npos) {
      text.erase(seed, text.find_first_of(",}", seed) - seed);
    }
    const auto [found, is_new] =
        numbers_.emplace(std::move(text), static_cast<std::uint32_t>(numbers_.size()));
    return {found->second, is_new};
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

/// An attempt of a trial whose values count, up to event `to`. Without a result, the last attempt.
struct CountingAttempt {
  std::int64_t key = 0;
  std::int64_t number = 0;
  std::int64_t to = 0;
};

std::vector<CountingAttempt> counting_attempts(Connection& connection, std::int64_t trial) {
  std::vector<CountingAttempt> all;
  Query rows(
      connection,
      "SELECT key, number, counts_to FROM attempts WHERE trial = ?1 AND counts_to IS NOT NULL "
      "ORDER BY number DESC");
  rows.with(trial);
  while (rows.step()) all.push_back({rows.integer(0), rows.integer(1), rows.integer(2)});
  if (!all.empty()) return all;
  Query last(
      connection,
      "SELECT key, number, 9223372036854775807 FROM attempts WHERE trial = ?1 ORDER BY number "
      "DESC LIMIT 1");
  last.with(trial);
  while (last.step()) all.push_back({last.integer(0), last.integer(1), last.integer(2)});
  return all;
}

}  // namespace

std::vector<std::string> listed(std::string_view joined) {
  std::vector<std::string> all;
  while (!joined.empty()) {
    const std::size_t comma = joined.find(',');
    all.emplace_back(joined.substr(0, comma));
    if (comma == std::string_view::npos) break;
    joined.remove_prefix(comma + 1);
  }
  return all;
}

const std::vector<Word>& configuration_words() {
  static sweeps::OfVocabulary<std::vector<Word>> all([] {
    std::vector<Word> result;
    for (const sweeps::Field& field : sweeps::fields()) {
      if (field.name != "seed") result.push_back(word_named(field.name));
    }
    result.push_back(word_named("user"));
    return result;
  });
  return all.get();
}

ScoreReader::ScoreReader(const std::filesystem::path& database)
    : connection_(std::make_shared<Connection>(database, Connection::Mode::read, OpenOptions())) {}
ScoreReader::ScoreReader(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
ScoreReader::ScoreReader(const Reader& reader) : ScoreReader(reader.connection_) {}
ScoreReader::~ScoreReader() = default;
ScoreReader::ScoreReader(ScoreReader&&) noexcept = default;
ScoreReader& ScoreReader::operator=(ScoreReader&&) noexcept = default;

void ScoreReader::each(const ScoreQuestion& question,
                       const std::function<void(const ScoredTrial&)>& take) const {
  reading(*connection_, [&] {
    const WantedSeries series(*connection_,
                              [&](const SeriesName& one) { return is_wanted(question, one); });
    const Statement statement = trials_of(question);
    Query trials(*connection_, statement.sql, 0);
    bind_all(trials, statement.parameters);
    // For each row of `trials`, SQLite would take longer for these columns than for the others.
    const Statement configured = configuration_of_trial();
    Query configuration_row(*connection_, configured.sql, 0);
    std::unordered_set<std::int64_t> stopped;
    Query stops(
        *connection_,
        "SELECT trial FROM early_stops CROSS JOIN trials t ON t.key = trial WHERE cancelled AND "
        "result_attempt IS NULL");
    while (stops.step()) stopped.insert(stops.integer(0));
    const bool every = question.steps == ScoreQuestion::Steps::every;
    Query values(*connection_,
                 every ? kEveryValue
                       : "SELECT series, step, value, 1 FROM selected_values WHERE trial = ?1");
    std::vector<Value> fields(question.fields.size());
    std::vector<Value> configuration;
    Configurations configurations;
    std::string id;
    std::string tasks;
    std::vector<Score> scores;
    std::optional<std::int64_t> result;
    std::optional<std::int64_t> scores_of;  // the trial whose scores were read last
    const std::function<std::span<const Score>()> read_scores = [&]() -> std::span<const Score> {
      if (scores_of == trials.integer(0)) return scores;
      scores_of = trials.integer(0);
      scores.clear();
      if (!result) return scores;
      values.with(*scores_of);
      while (values.step()) {
        const SeriesName* const name = series.find(tasks, values.integer(0));
        if (name == nullptr) continue;
        scores.push_back({name, values.integer(1), values.maybe_real(2), values.integer(3) != 0});
      }
      values.again();
      // Values of one step keep their order.
      const auto earlier = [](const Score& a, const Score& b) {
        return std::tie(a.series, a.step) < std::tie(b.series, b.step);
      };
      if (!std::is_sorted(scores.begin(), scores.end(), earlier)) {
        std::stable_sort(scores.begin(), scores.end(), earlier);
      }
      return scores;
    };
    while (trials.step()) {
      id = trials.text(1);
      tasks = trials.text(2);
      constexpr int kTrialColumns = 5;
      for (std::size_t i = 0; i < fields.size(); ++i) {
        fields[i] = trials.value(kTrialColumns + static_cast<int>(i));
      }
      configuration.clear();
      std::uint32_t number = 0;
      if (question.configurations) {
        const auto [known, is_new] = configurations.number(trials.text(4));
        number = known;
        if (is_new) {
          bind_all(configuration_row, configured.parameters);
          configuration_row.with(trials.integer(0)).step();
          for (std::size_t i = 0; i < configuration_words().size(); ++i) {
            configuration.push_back(configuration_row.value(static_cast<int>(i)));
          }
          configuration_row.again();
        }
      }
      result = trials.maybe_integer(3);
      take({trials.integer(0), id, fields, number, configuration, tasks, result.has_value(),
            stopped.contains(trials.integer(0)), read_scores});
    }
  });
}

std::vector<SeriesName> ScoreReader::series() const {
  return reading(*connection_, [&] { return all_series(*connection_); });
}

std::vector<SeriesName> ScoreReader::series_for(const ScoreQuestion& question) const {
  std::vector<SeriesName> all = series();
  std::erase_if(all, [&](const SeriesName& one) { return !is_wanted(question, one); });
  return all;
}

std::vector<std::string> ScoreReader::values_of(const Word& word, int limit) const {
  return reading(*connection_, [&] {
    Statement statement;
    if (word.scope == WordScope::score) {
      statement.sql =
          fmt::format("SELECT DISTINCT {0} FROM series WHERE {0} != '' ORDER BY 1", word.name);
    } else if (word.name == "sweep") {
      statement.sql = "SELECT name FROM sweeps ORDER BY 1";
    } else if (word.scope == WordScope::tag) {
      statement.sql = "SELECT tag FROM trial_tags UNION SELECT tag FROM sweep_tags ORDER BY 1";
    } else {
      const std::string value = expression(word, statement);
      const char* from = word.scope == WordScope::member ? "sweep_trials m"
                         : word.scope == WordScope::attempt
                             ? "trials t JOIN attempts a ON a.key = t.result_attempt"
                         : word.scope == WordScope::artifact
                             ? "trials t LEFT JOIN artifacts f ON f.attempt = t.result_attempt"
                             : "trials t";
      statement.sql =
          fmt::format("SELECT DISTINCT {0} FROM {1} WHERE {0} IS NOT NULL ORDER BY 1", value, from);
    }
    statement.sql += " LIMIT " + statement.bound(std::int64_t{limit});
    Query rows(*connection_, statement.sql, 0);
    bind_all(rows, statement.parameters);
    std::vector<std::string> values;
    while (rows.step()) values.push_back(rows.text(0));
    return values;
  });
}

std::vector<HistoryPoint> ScoreReader::history(const std::string& trial_id,
                                               const SeriesName& series) const {
  return reading(*connection_, [&] {
    const std::int64_t trial = trial_named(*connection_, trial_id);
    Query tasks(*connection_, "SELECT tasks FROM trials WHERE key = ?1");
    tasks.with(trial).step();
    const WantedSeries one(*connection_, [&](const SeriesName& s) { return s.key == series.key; });
    const bool belongs = one.find(tasks.text(0), series.key) != nullptr;
    std::vector<HistoryPoint> points;
    Query rows(
        *connection_,
        "SELECT v.seq, v.step, v.value, c.trial IS NOT NULL FROM metric_values v LEFT JOIN "
        "selected_values c ON c.trial = ?4 AND c.series = v.series AND c.attempt = v.attempt "
        "AND c.seq = v.seq WHERE v.attempt = ?1 AND v.seq <= ?2 AND v.series = ?3");
    for (const CountingAttempt& attempt : counting_attempts(*connection_, trial)) {
      rows.with(attempt.key).with(attempt.to).with(series.key).with(trial);
      while (rows.step()) {
        points.push_back({attempt.number, rows.integer(0), rows.integer(1), rows.maybe_real(2),
                          belongs && rows.integer(3) != 0});
      }
      rows.again();
    }
    const auto earlier = [](const HistoryPoint& a, const HistoryPoint& b) { return a.seq < b.seq; };
    const auto counts = [](const HistoryPoint& point) { return point.counts; };
    // Without a result, all points belong to one attempt.
    if (belongs && !points.empty() && std::none_of(points.begin(), points.end(), counts)) {
      std::max_element(points.begin(), points.end(), earlier)->counts = true;
    }
    std::sort(points.begin(), points.end(), [](const HistoryPoint& a, const HistoryPoint& b) {
      return std::tie(a.step, a.attempt, a.seq) < std::tie(b.step, b.attempt, b.seq);
    });
    return points;
  });
}

std::vector<SeriesName> ScoreReader::series_of(const std::string& trial_id) const {
  return reading(*connection_, [&] {
    std::set<std::int64_t> keys;
    Query rows(*connection_,
               "SELECT DISTINCT series FROM metric_values WHERE attempt = ?1 AND seq <= ?2");
    for (const CountingAttempt& attempt :
         counting_attempts(*connection_, trial_named(*connection_, trial_id))) {
      rows.with(attempt.key).with(attempt.to);
      while (rows.step()) keys.insert(rows.integer(0));
      rows.again();
    }
    std::vector<SeriesName> found = all_series(*connection_);
    std::erase_if(found, [&](const SeriesName& one) { return !keys.contains(one.key); });
    return found;
  });
}

std::optional<ArtifactPlace> ScoreReader::artifact(const std::string& trial_id) const {
  return reading(*connection_, [&]() -> std::optional<ArtifactPlace> {
    Query row(*connection_,
              fmt::format("SELECT a.number, f.path, {}, a.finished_step, a.train_seconds FROM "
                          "trials t JOIN attempts a ON a.key = t.result_attempt LEFT JOIN "
                          "artifacts f ON f.attempt = a.key WHERE t.trial_id = ?1",
                          internal::kSelectedStep),
              0);
    if (!row.with(trial_id).step()) return std::nullopt;
    ArtifactPlace place;
    place.attempt = row.integer(0);
    place.path = row.text(1);
    place.selected_step = row.maybe_integer(2);
    place.last_step = row.maybe_integer(3);
    place.train_seconds = row.maybe_real(4);
    return place;
  });
}

}  // namespace petlab::results
