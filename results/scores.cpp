#include "results/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/remarks.h"
#include "results/schema.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::bind_all;
using internal::Connection;
using internal::expression;
using internal::Query;
using internal::reading;
using internal::Statement;
using internal::trials_of;

bool matches(const Condition& condition, const std::string& text) {
  const auto order = [&](const Value& value) {
    const auto* other = std::get_if<std::string>(&value);
    return text.compare(other == nullptr ? std::string() : *other);
  };
  const bool found = std::any_of(condition.values.begin(), condition.values.end(),
                                 [&](const Value& value) { return order(value) == 0; });
  switch (condition.op) {
    case Condition::Op::equal:
      return found;
    case Condition::Op::unequal:
      return !found;
    case Condition::Op::less:
      return order(condition.values.at(0)) < 0;
    case Condition::Op::at_most:
      return order(condition.values.at(0)) <= 0;
    case Condition::Op::greater:
      return order(condition.values.at(0)) > 0;
    case Condition::Op::at_least:
      break;
  }
  return order(condition.values.at(0)) >= 0;
}

std::vector<SeriesName> all_series(Connection& connection) {
  std::vector<SeriesName> all;
  Query rows(connection, "SELECT key, split, task, name FROM series ORDER BY split, task, name");
  while (rows.step()) all.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.text(3)});
  return all;
}

bool has_task(std::string_view tasks, std::string_view task) {
  while (!task.empty()) {
    const std::size_t comma = tasks.find(',');
    if (tasks.substr(0, comma) == task) return true;
    if (comma == std::string_view::npos) return false;
    tasks.remove_prefix(comma + 1);
  }
  return false;
}

/// What is looked for in trials of the same tasks, and what was found in one of them.
class Search {
 public:
  Search(const std::vector<const SeriesName*>& wanted, const std::vector<const SeriesName*>& tests)
      : wanted_(wanted) {
    for (const SeriesName* one : tests) tests_.insert(one->key);
    for (std::size_t i = 0; i < wanted_.size(); ++i) place_[wanted_[i]->key] = i;
    found_.resize(wanted_.size());
  }

  void begin() {
    for (Found& one : found_) one = {};
    selected_.reset();
    settled_ = 0;
  }
  /// Takes a row, the latest first.
  void take(const Query& row) {
    const std::int64_t key = row.integer(0);
    const auto place = place_.find(key);
    const bool tells = !selected_ && tests_.contains(key);
    if (place == place_.end() && !tells) return;
    const std::int64_t step = row.integer(1);
    if (tells) {
      selected_ = step;
      for (Found& one : found_) {
        if (one.there && one.step <= step) settle(one);
      }
    }
    if (place == place_.end()) return;
    Found& found = found_[place->second];
    if (found.settled) return;
    const bool at_selected = selected_ && step == *selected_;
    if (!found.there || at_selected) {
      found.there = true;
      found.step = step;
      found.value = row.maybe_real(2);
    }
    // Without test scores there is no selected step, and the last value is the one.
    if (at_selected || tests_.empty() || wanted_[place->second]->split == "test" ||
        (selected_ && step < *selected_)) {
      settle(found);
    }
  }
  bool complete() const { return settled_ == found_.size(); }
  void scores(std::vector<Score>& out) const {
    out.clear();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].there) out.push_back({wanted_[i], found_[i].step, found_[i].value});
    }
  }

 private:
  struct Found {
    bool there = false;
    bool settled = false;
    std::int64_t step = 0;
    std::optional<double> value;
  };
  void settle(Found& found) {
    settled_ += found.settled ? 0 : 1;
    found.settled = true;
  }

  std::vector<const SeriesName*> wanted_;
  std::set<std::int64_t> tests_;
  std::unordered_map<std::int64_t, std::size_t> place_;
  std::vector<Found> found_;
  std::optional<std::int64_t> selected_;
  std::size_t settled_ = 0;
};

/// The searches of a question, by the tasks of trials.
class Searches {
 public:
  Searches(Connection& connection, const ScoreQuestion& question) : all_(all_series(connection)) {
    for (const SeriesName& one : all_) {
      const bool is_wanted =
          is_in(question.splits, one.split) &&
          (question.metrics.empty() || is_in(question.metrics, one.name)) &&
          std::all_of(
              question.where.begin(), question.where.end(), [&](const Condition& condition) {
                return condition.word.scope != WordScope::score ||
                       matches(condition, condition.word.name == "task" ? one.task : one.name);
              });
      if (is_wanted) wanted_.push_back(&one);
    }
    std::map<std::string, bool> owned;
    Query owner(connection, "SELECT 1 FROM trials WHERE instr(',' || tasks || ',', ?1) LIMIT 1");
    for (const SeriesName& one : all_) {
      const auto [known, is_new] = owned.emplace(one.task, false);
      if (!is_new) continue;
      known->second = owner.with("," + one.task + ",").step();
      owner.again();
      if (!known->second) ownerless_.insert(one.task);
    }
  }

  Search& of(const std::string& tasks) {
    const auto found = by_tasks_.find(tasks);
    if (found != by_tasks_.end()) return found->second;
    std::vector<const SeriesName*> wanted;
    std::vector<const SeriesName*> tests;
    for (const SeriesName* one : wanted_) {
      if (is_of(tasks, *one)) wanted.push_back(one);
    }
    for (const SeriesName& one : all_) {
      if (one.split == "test" && is_of(tasks, one)) tests.push_back(&one);
    }
    return by_tasks_.emplace(tasks, Search(wanted, tests)).first->second;
  }

 private:
  static bool is_in(const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }
  bool is_of(const std::string& tasks, const SeriesName& one) const {
    return has_task(tasks, one.task) || ownerless_.contains(one.task);
  }

  std::vector<SeriesName> all_;
  std::vector<const SeriesName*> wanted_;
  std::set<std::string> ownerless_;
  std::unordered_map<std::string, Search> by_tasks_;
};

// The attempts of a trial that count, the last first; without a result the last alone.
struct Counting {
  std::int64_t key = 0;
  std::int64_t number = 0;
  std::int64_t to = 0;
};
std::vector<Counting> counting_attempts(Connection& connection, std::int64_t trial) {
  std::vector<Counting> all;
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

std::int64_t key_of(Connection& connection, const std::string& trial_id) {
  Query row(connection, "SELECT key FROM trials WHERE trial_id = ?1");
  if (!row.with(trial_id).step()) {
    throw std::invalid_argument(fmt::format("there is no trial {}", trial_id));
  }
  return row.integer(0);
}

/// Trials of one configuration, by its text without the seed: reading its fields anew for each
/// trial would take most of the time.
class Configurations {
 public:
  /// The number, and whether it is new.
  std::pair<std::uint32_t, bool> number(std::string text) {
    // The first is the trial's own: what stands before it holds no unescaped quotes.
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

constexpr std::string_view kLatestFirst =
    "SELECT series, step, value FROM metric_values WHERE attempt = ?1 AND seq <= ?2 ORDER BY seq "
    "DESC";

}  // namespace

const std::vector<Word>& configuration_words() {
  static const std::vector<Word> all = [] {
    std::vector<Word> made;
    for (const sweeps::Field& field : sweeps::fields()) {
      if (field.name != "seed") made.push_back(word_named(field.name));
    }
    made.push_back(word_named("user"));
    return made;
  }();
  return all;
}

ScoreReader::ScoreReader(const std::filesystem::path& database)
    : connection_(std::make_shared<Connection>(database, Connection::Mode::read, OpenOptions())) {
  internal::check_version(*connection_);
  internal::check_columns(*connection_);
}
ScoreReader::ScoreReader(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
ScoreReader::~ScoreReader() = default;
ScoreReader::ScoreReader(ScoreReader&&) noexcept = default;
ScoreReader& ScoreReader::operator=(ScoreReader&&) noexcept = default;

void ScoreReader::each(const ScoreQuestion& question,
                       const std::function<void(const ScoredTrial&)>& take) const {
  reading(*connection_, [&] {
    Searches searches(*connection_, question);
    const Statement statement =
        trials_of(question, internal::has_table(*connection_, "hidden_trials"),
                  internal::knows_remarks(*connection_), internal::statement_about(*connection_));
    Query trials(*connection_, statement.sql, 0);
    bind_all(trials, statement.parameters);
    Query values(*connection_, kLatestFirst);
    std::vector<Value> fields(question.fields.size());
    std::vector<Value> configuration;
    Configurations configurations;
    std::vector<Score> scores;
    std::string id;
    std::string tasks;
    const auto read_attempt = [&](Search& search, std::int64_t attempt, std::int64_t to) {
      values.with(attempt).with(to);
      while (!search.complete() && values.step()) search.take(values);
      values.again();
    };
    while (trials.step()) {
      id = trials.text(1);
      tasks = trials.text(2);
      constexpr int kOwnFields = 5;
      const int end = kOwnFields + static_cast<int>(fields.size());
      for (int i = kOwnFields; i < end; ++i) {
        fields[static_cast<std::size_t>(i - kOwnFields)] = trials.value(i);
      }
      configuration.clear();
      const auto [number, is_new] = configurations.number(trials.text(4));
      for (int i = 0; is_new && i < static_cast<int>(configuration_words().size()); ++i) {
        configuration.push_back(trials.value(end + i));
      }
      scores.clear();
      const std::optional<std::int64_t> result = trials.maybe_integer(3);
      if (result) {
        Search& search = searches.of(tasks);
        search.begin();
        read_attempt(search, *result, std::numeric_limits<std::int64_t>::max());
        if (!search.complete()) {
          for (const Counting& earlier : counting_attempts(*connection_, trials.integer(0))) {
            if (earlier.key != *result) read_attempt(search, earlier.key, earlier.to);
          }
        }
        search.scores(scores);
      }
      take({trials.integer(0), id, fields, number, configuration, tasks, result.has_value(),
            scores});
    }
  });
}

std::vector<SeriesName> ScoreReader::series() const {
  return reading(*connection_, [&] { return all_series(*connection_); });
}

std::vector<std::string> ScoreReader::values_of(const Word& word, int limit) const {
  return reading(*connection_, [&] {
    Statement statement = internal::statement_about(*connection_);
    if (word.scope == WordScope::score) {
      statement.sql =
          fmt::format("SELECT DISTINCT {0} FROM series WHERE {0} != '' ORDER BY 1", word.name);
    } else if (word.name == "sweep") {
      statement.sql = "SELECT name FROM sweeps ORDER BY 1";
    } else if (word.scope == WordScope::tag) {
      if (!internal::knows_remarks(*connection_)) return std::vector<std::string>();
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
    std::vector<HistoryPoint> points;
    Query rows(*connection_,
               "SELECT seq, step, value FROM metric_values WHERE attempt = ?1 AND seq <= ?2 AND "
               "series = ?3 ORDER BY seq");
    for (const Counting& attempt :
         counting_attempts(*connection_, key_of(*connection_, trial_id))) {
      rows.with(attempt.key).with(attempt.to).with(series.key);
      while (rows.step()) {
        points.push_back({attempt.number, rows.integer(0), rows.integer(1), rows.maybe_real(2)});
      }
      rows.again();
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
    for (const Counting& attempt :
         counting_attempts(*connection_, key_of(*connection_, trial_id))) {
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
              "SELECT a.key, a.number, f.path, a.finished_step, a.train_seconds FROM trials t JOIN "
              "attempts a ON a.key = t.result_attempt LEFT JOIN artifacts f ON f.attempt = a.key "
              "WHERE t.trial_id = ?1");
    if (!row.with(trial_id).step()) return std::nullopt;
    ArtifactPlace place;
    place.attempt = row.integer(1);
    place.path = row.text(2);
    place.last_step = row.maybe_integer(3);
    place.train_seconds = row.maybe_real(4);
    Query selected(
        *connection_,
        "SELECT v.step FROM metric_values v CROSS JOIN series s ON s.key = v.series WHERE "
        "v.attempt = ?1 AND s.split = 'test' ORDER BY v.seq DESC LIMIT 1");
    if (selected.with(row.integer(0)).step()) place.selected_step = selected.integer(0);
    return place;
  });
}

}  // namespace petlab::results
