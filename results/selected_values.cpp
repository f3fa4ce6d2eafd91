#include "results/selected_values.h"

#include <algorithm>
#include <string_view>

namespace petlab::results::internal {
namespace {

// Selects the values of one trial. The selected step is that of the test score reported last,
// preferably of the trial's own tasks. For each metric, the last value at that step counts, or else
// its last value; for a test metric always its last value. With max(), SQLite returns the other
// columns of the maximal row.
#define PETLAB_SELECT_VALUES(TRIAL)                                                              \
  "INSERT INTO selected_values SELECT trial, series, attempt, seq, step, value FROM (SELECT *, " \
  "max(((NOT is_test AND step IS (SELECT step FROM counted_values WHERE trial = " TRIAL          \
  " AND is_test ORDER BY is_own DESC, place DESC LIMIT 1)) << 62) + place) FROM counted_values " \
  "WHERE trial = " TRIAL " GROUP BY series)"

// Splits joined names by rewriting them as a JSON array: json_quote escapes quotes and backslashes,
// and commas become separators. Excludes existing names explicitly, because OR IGNORE has no effect
// in a trigger that an upsert fires.
#define PETLAB_NEW_TASKS(TASKS)                                           \
  "SELECT DISTINCT value FROM json_each('[' || replace(json_quote(" TASKS \
  "), ',', '\",\"') || "                                                  \
  "']') WHERE value <> '' AND value NOT IN (SELECT task FROM task_names)"

bool has_task(std::string_view tasks, std::string_view task) {
  while (!task.empty()) {
    const std::size_t comma = tasks.find(',');
    if (tasks.substr(0, comma) == task) return true;
    if (comma == std::string_view::npos) return false;
    tasks.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

const char* const kSelectedTables =
    "CREATE TABLE IF NOT EXISTS selected_values (trial INTEGER NOT NULL REFERENCES trials, series "
    "INTEGER NOT NULL REFERENCES series, attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER "
    "NOT NULL, step INTEGER NOT NULL, value REAL, PRIMARY KEY (trial, series)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS task_names (task TEXT PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TRIGGER IF NOT EXISTS result_uncounted AFTER UPDATE OF counts_to ON attempts WHEN "
    "OLD.counts_to IS NOT NULL AND NEW.counts_to IS NULL BEGIN DELETE FROM selected_values WHERE "
    "trial = NEW.trial; END;"
    "CREATE TRIGGER IF NOT EXISTS result_counted AFTER UPDATE OF counts_to ON attempts WHEN "
    "NEW.counts_to IS NOT NULL BEGIN DELETE FROM selected_values WHERE trial = NEW.trial; "
    PETLAB_SELECT_VALUES("NEW.trial") "; END;"
    "CREATE TRIGGER IF NOT EXISTS trial_inserted AFTER INSERT ON trials BEGIN INSERT "
    "INTO task_names " PETLAB_NEW_TASKS("NEW.tasks") "; END;"
    "CREATE TRIGGER IF NOT EXISTS trial_tasks_changed AFTER UPDATE OF tasks ON trials BEGIN INSERT "
    "INTO task_names " PETLAB_NEW_TASKS("NEW.tasks") "; END;";

const char* const kCountedView =
    "SELECT t.key AS trial, v.series, a.key AS attempt, v.seq, v.step, v.value, "
    "(a.number << 40) + v.seq AS place, s.split = 'test' AS is_test, instr(',' || t.tasks "
    "|| ',', ',' || s.task || ',') > 0 AS is_own FROM trials t CROSS JOIN attempts a ON a.trial = "
    "t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq "
    "<= a.counts_to CROSS JOIN series s ON s.key = v.series";

// ORDER BY cannot refer to the outer statement, so the subquery joins trials again.
const char* const kSelectedStep =
    "(SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN "
    "attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key "
    "AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, "
    "b.number DESC, o.seq DESC LIMIT 1)";

const char* const kTaskBelongs =
    "(instr(',' || t.tasks || ',', ',' || s.task || ',') OR s.task NOT IN (SELECT task FROM "
    "task_names))";

void fill_selected_values(Connection& connection) {
  connection.exec("DELETE FROM selected_values; DELETE FROM task_names");
  // One trial at a time, because sorting the values of all trials would need memory for all.
  Query trials(connection, "SELECT key FROM trials WHERE result_attempt IS NOT NULL");
  Query select(connection, PETLAB_SELECT_VALUES("?1"));
  while (trials.step()) {
    select.with(trials.integer(0)).run();
    select.again();
  }
  connection.exec(
      "INSERT OR IGNORE INTO task_names SELECT j.value FROM trials t CROSS JOIN "
      "json_each('[' || replace(json_quote(t.tasks), ',', '\",\"') || ']') j WHERE "
      "j.value <> ''");
}

std::vector<SeriesName> all_series(Connection& connection) {
  std::vector<SeriesName> all;
  Query rows(connection,
             "SELECT key, split, task, name FROM series ORDER BY split, task, name, key");
  while (rows.step()) all.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.text(3)});
  return all;
}

WantedSeries::WantedSeries(Connection& connection,
                           const std::function<bool(const SeriesName&)>& wanted)
    : wanted_(all_series(connection)) {
  std::erase_if(wanted_, [&](const SeriesName& one) { return !wanted(one); });
  for (std::size_t place = 0; place < wanted_.size(); ++place) {
    places_[wanted_[place].key] = place;
  }
  Query names(connection, "SELECT task FROM task_names");
  while (names.step()) tasks_.insert(names.text(0));
}

const SeriesName* WantedSeries::find(const std::string& tasks, std::int64_t key) const {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  const SeriesName& found = wanted_[place->second];
  const bool belongs = has_task(tasks, found.task) || !tasks_.contains(found.task);
  return belongs ? &found : nullptr;
}

}  // namespace petlab::results::internal
