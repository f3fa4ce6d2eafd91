#include "results/examples.h"

#include <nlohmann/json.hpp>

#include "base/shallow_json.h"
#include "results/connection.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

Examples examples_from(const std::string& text) {
  Examples found;
  const auto tasks = base::shallow_json_or_none(text);
  if (!tasks.is_object()) return found;
  for (const auto& [task, splits] : tasks.items()) {
    if (!splits.is_object()) continue;
    for (const auto& [split, number] : splits.items()) {
      if (number.is_number_integer()) found[task][split] = number.get<std::int64_t>();
    }
  }
  return found;
}

}  // namespace

namespace internal {

const char* const kExampleTables = R"sql(
CREATE TABLE IF NOT EXISTS example_texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS examples (
  attempt INTEGER PRIMARY KEY REFERENCES attempts,
  text INTEGER NOT NULL REFERENCES example_texts);
)sql";

const char* const kExamplesView =
    "SELECT t.trial_id, a.number AS attempt, a.key IS "
    "t.result_attempt AS is_result, j.key AS task, s.key AS split, s.value AS examples FROM "
    "trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN examples e ON e.attempt = a.key "
    "CROSS JOIN example_texts x ON x.key = e.text CROSS JOIN json_each(x.text) j CROSS JOIN "
    "json_each(j.value) s";

void record_examples(Connection& connection, std::int64_t attempt, const Examples& examples) {
  if (examples.empty()) return;
  const std::string text = nlohmann::json(examples).dump();
  Query(connection, "INSERT OR IGNORE INTO example_texts (text) VALUES (?1)").with(text).run();
  Query(connection,
        "INSERT OR REPLACE INTO examples (attempt, text) SELECT ?1, key FROM example_texts WHERE "
        "text = ?2")
      .with(attempt)
      .with(text)
      .run();
}

}  // namespace internal

Examples examples_of(const Reader& reader, const AttemptRef& attempt) {
  internal::Connection& connection = internal::connection_of(reader);
  return internal::reading(connection, [&] {
    internal::Query row(connection,
                        "SELECT x.text FROM examples e JOIN example_texts x ON x.key = e.text "
                        "WHERE e.attempt = ?1");
    return row.with(attempt.key).step() ? examples_from(row.text(0)) : Examples();
  });
}

std::unordered_map<std::string, std::shared_ptr<const Examples>> examples_in(
    const Reader& reader, const std::string& sweep) {
  internal::Connection& connection = internal::connection_of(reader);
  return internal::reading(connection, [&] {
    std::unordered_map<std::string, std::shared_ptr<const Examples>> found;
    internal::Query rows(
        connection,
        "SELECT t.trial_id, x.key, x.text FROM (SELECT DISTINCT trial FROM sweep_trials WHERE "
        "sweep = (SELECT key FROM sweeps WHERE name = ?1)) m CROSS JOIN trials t ON t.key = "
        "m.trial CROSS JOIN examples e ON e.attempt = t.result_attempt CROSS JOIN example_texts x "
        "ON x.key = e.text WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key)");
    rows.with(sweep);
    std::unordered_map<std::int64_t, std::shared_ptr<const Examples>> known;
    while (rows.step()) {
      std::shared_ptr<const Examples>& examples = known[rows.integer(1)];
      if (examples == nullptr) {
        examples = std::make_shared<const Examples>(examples_from(rows.text(2)));
      }
      found[rows.text(0)] = examples;
    }
    return found;
  });
}

}  // namespace petlab::results
