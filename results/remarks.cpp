#include "results/remarks.h"

#include <fmt/format.h>

#include <stdexcept>

#include "results/connection.h"
#include "results/snapshot.h"

namespace petlab::results {

namespace internal {

// Tags can be derived from the remarks. Their separate tables make conditions on tags fast.
const char* const kRemarkTables = R"sql(
CREATE TABLE IF NOT EXISTS trial_remarks (
  trial INTEGER NOT NULL REFERENCES trials, time REAL NOT NULL, what TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (trial, time, what, text)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sweep_remarks (
  sweep INTEGER NOT NULL REFERENCES sweeps, time REAL NOT NULL, what TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (sweep, time, what, text)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trial_tags (
  trial INTEGER NOT NULL REFERENCES trials, tag TEXT NOT NULL,
  PRIMARY KEY (trial, tag)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sweep_tags (
  sweep INTEGER NOT NULL REFERENCES sweeps, tag TEXT NOT NULL,
  PRIMARY KEY (sweep, tag)) WITHOUT ROWID;
)sql";

const char* const kTagsOfTrial =
    "SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM "
    "sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key";

}  // namespace internal

namespace {

using internal::Connection;
using internal::connection_of;
using internal::Query;
using protocol::Remark;

// The statements for trials or for sweeps.
struct RemarkSql {
  const char* key;
  const char* insert;
  const char* last_word;
  const char* add_tag;
  const char* take_tag;
  const char* all;
  const char* tags;
};
#define PETLAB_REMARK_SQL(ONE, TABLE, NAME)                                                       \
  {                                                                                               \
    "SELECT key FROM " TABLE " WHERE " NAME " = ?1",                                              \
        "INSERT OR IGNORE INTO " ONE "_remarks (" ONE                                             \
        ", time, what, text) VALUES (?1, ?2, ?3, "                                                \
        "?4)",                                                                                    \
        "SELECT what = 'tag' FROM " ONE "_remarks WHERE " ONE                                     \
        " = ?1 AND what IN ('tag', 'untag') AND text = ?2 ORDER BY time DESC, what DESC LIMIT 1", \
        "INSERT OR IGNORE INTO " ONE "_tags (" ONE ", tag) VALUES (?1, ?2)",                      \
        "DELETE FROM " ONE "_tags WHERE " ONE " = ?1 AND tag = ?2",                               \
        "SELECT what, text, time FROM " ONE "_remarks WHERE " ONE                                 \
        " = ?1 ORDER BY time, what, "                                                             \
        "text",                                                                                   \
        "SELECT tag FROM " ONE "_tags WHERE " ONE " = ?1 ORDER BY tag"                            \
  }
constexpr RemarkSql kOfTrials = PETLAB_REMARK_SQL("trial", "trials", "trial_id");
constexpr RemarkSql kOfSweeps = PETLAB_REMARK_SQL("sweep", "sweeps", "name");

const RemarkSql& sql_of(const RemarkSubject& subject) {
  return subject.trial_id.empty() ? kOfSweeps : kOfTrials;
}

std::optional<std::int64_t> subject_key(Connection& connection, const RemarkSubject& subject) {
  Query row(connection, sql_of(subject).key);
  row.with(subject.trial_id.empty() ? subject.sweep : subject.trial_id);
  return row.step() ? std::optional(row.integer(0)) : std::nullopt;
}

Remark::What what_of(const std::string& word) {
  for (const Remark::What what : {Remark::What::tag, Remark::What::untag}) {
    if (word == protocol::to_string(what)) return what;
  }
  return Remark::What::note;
}

}  // namespace

void record_remark(Batch& batch, const RemarkSubject& subject, const Remark& remark) {
  internal::writing(batch, "record a remark", [&](Connection& connection) {
    const RemarkSql& sql = sql_of(subject);
    const auto key = subject_key(connection, subject);
    if (!key) {
      throw std::invalid_argument(fmt::format(
          "there is no {} {} in {}", subject.trial_id.empty() ? "sweep" : "trial",
          subject.trial_id.empty() ? subject.sweep : subject.trial_id, connection.file().string()));
    }
    Query(connection, sql.insert)
        .with(*key)
        .with(remark.time)
        .with(protocol::to_string(remark.what))
        .with(remark.text)
        .run();
    if (remark.what == Remark::What::note) return;
    bool is_set = false;
    {
      Query last(connection, sql.last_word);
      is_set = last.with(*key).with(remark.text).step() && last.integer(0) != 0;
    }
    Query(connection, is_set ? sql.add_tag : sql.take_tag).with(*key).with(remark.text).run();
  });
}

Remarks remarks_of(const Reader& reader, const RemarkSubject& subject) {
  Connection& connection = connection_of(reader);
  return internal::reading(connection, [&] {
    Remarks found;
    const auto key = subject_key(connection, subject);
    if (!key) return found;
    Query rows(connection, sql_of(subject).all);
    rows.with(*key);
    while (rows.step()) {
      found.all.push_back({what_of(rows.text(0)), rows.text(1), rows.real(2)});
    }
    Query tags(connection, sql_of(subject).tags);
    tags.with(*key);
    while (tags.step()) found.tags.push_back(tags.text(0));
    return found;
  });
}

std::vector<std::pair<std::string, std::int64_t>> all_tags(const Reader& reader) {
  Connection& connection = connection_of(reader);
  return internal::reading(connection, [&] {
    std::vector<std::pair<std::string, std::int64_t>> found;
    Query rows(connection,
               "SELECT tag, count(trial) FROM (SELECT trial, tag FROM trial_tags UNION SELECT "
               "m.trial, g.tag FROM sweep_tags g LEFT JOIN sweep_trials m ON m.sweep = g.sweep) "
               "GROUP BY tag ORDER BY tag");
    while (rows.step()) found.emplace_back(rows.text(0), rows.integer(1));
    return found;
  });
}

std::map<std::string, std::vector<std::string>> tags_by_trial(const Reader& reader) {
  Connection& connection = connection_of(reader);
  return internal::reading(connection, [&] {
    std::map<std::string, std::vector<std::string>> found;
    Query rows(connection,
               "SELECT t.trial_id, g.tag FROM trial_tags g JOIN trials t ON t.key = g.trial UNION "
               "SELECT t.trial_id, g.tag FROM sweep_tags g JOIN sweep_trials m ON m.sweep = "
               "g.sweep JOIN trials t ON t.key = m.trial ORDER BY 1, 2");
    while (rows.step()) found[rows.text(0)].push_back(rows.text(1));
    return found;
  });
}

}  // namespace petlab::results
