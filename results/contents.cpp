#include "results/contents.h"

#include <bit>
#include <string_view>

#include "base/sha256.h"
#include "results/connection.h"
#include "results/schema.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;
using internal::reading;

// Numbers take eight bytes, and texts follow their lengths, so that different rows never produce
// the same bytes.
void add_number(base::Sha256& hash, std::uint64_t number) {
  char bytes[8];
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  hash.add(bytes, sizeof bytes);
}

void add_text(base::Sha256& hash, std::string_view text) {
  add_number(hash, text.size());
  hash.add(text.data(), text.size());
}

// Columns from `at`: step, split, task, name, value.
void add_value(base::Sha256& hash, const Query& row, int at) {
  add_number(hash, static_cast<std::uint64_t>(row.integer(at)));
  for (int column = at + 1; column < at + 4; ++column) add_text(hash, row.text(column));
  const std::optional<double> value = row.maybe_real(at + 4);
  add_number(hash, value ? 1 : 0);
  if (value) add_number(hash, std::bit_cast<std::uint64_t>(*value));
}

// Rows of PETLAB_REPORTED, grouped by attempt.
ContentsReader::ByAttempt digests_of(Query& rows) {
  ContentsReader::ByAttempt found;
  std::optional<base::Sha256> hash;
  std::pair<std::string, std::int64_t> attempt;
  ValuesDigest values;
  const auto close = [&] {
    if (hash) values.digest = hash->finish();
    if (hash) found[attempt] = values;
  };
  while (rows.step()) {
    std::pair<std::string, std::int64_t> next{rows.text(0), rows.integer(1)};
    if (!hash || next != attempt) {
      close();
      attempt = std::move(next);
      values = {};
      hash.emplace();
    }
    ++values.values;
    add_number(*hash, static_cast<std::uint64_t>(rows.integer(2)));
    add_value(*hash, rows, 3);
  }
  close();
  return found;
}

}  // namespace

ContentsReader::ContentsReader(const std::filesystem::path& database)
    : connection_(std::make_shared<Connection>(database, Connection::Mode::read, OpenOptions())) {}
ContentsReader::~ContentsReader() = default;
ContentsReader::ContentsReader(ContentsReader&&) noexcept = default;
ContentsReader& ContentsReader::operator=(ContentsReader&&) noexcept = default;

std::vector<std::string> ContentsReader::damage() const {
  return reading(*connection_, [&] {
    std::vector<std::string> found;
    Query rows(*connection_, "PRAGMA integrity_check");
    while (rows.step()) {
      if (std::string text = rows.text(0); text != "ok") found.push_back(std::move(text));
    }
    return found;
  });
}

std::vector<std::string> ContentsReader::trial_ids() const {
  return reading(*connection_, [&] {
    std::vector<std::string> ids;
    Query rows(*connection_, "SELECT trial_id FROM trials ORDER BY trial_id");
    while (rows.step()) ids.push_back(rows.text(0));
    return ids;
  });
}

#define PETLAB_REPORTED(WHERE)                                                                  \
  "SELECT t.trial_id, a.number, v.seq, v.step, s.split, s.task, s.name, v.value FROM trials t " \
  "CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN metric_values v ON v.attempt = a.key "   \
  "CROSS "                                                                                      \
  "JOIN series s ON s.key = v.series " WHERE " ORDER BY t.trial_id, a.number, v.seq"

ContentsReader::ByAttempt ContentsReader::attempts() const {
  return reading(*connection_, [&] {
    Query rows(*connection_, PETLAB_REPORTED(""));
    return digests_of(rows);
  });
}

ContentsReader::ByAttempt ContentsReader::attempts(const std::string& trial_id) const {
  return reading(*connection_, [&] {
    Query rows(*connection_, PETLAB_REPORTED("WHERE t.trial_id = ?1"));
    rows.with(trial_id);
    return digests_of(rows);
  });
}

std::vector<CountedValue> ContentsReader::counted(const std::string& trial_id) const {
  return reading(*connection_, [&] {
    std::vector<CountedValue> values;
    Query rows(
        *connection_,
        "SELECT s.split, s.task, s.name, v.step, v.value FROM trials t CROSS JOIN attempts a "
        "ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON "
        "v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series "
        "WHERE t.trial_id = ?1 ORDER BY s.split, s.task, s.name, v.step, a.number, v.seq");
    rows.with(trial_id);
    while (rows.step()) {
      values.push_back(
          {rows.text(0), rows.text(1), rows.text(2), rows.integer(3), rows.maybe_real(4)});
    }
    return values;
  });
}

namespace {

#define PETLAB_ARTIFACTS(WHERE)                                                                   \
  "SELECT t.trial_id, a.number, f.path, f.stored_bits, t.result_attempt IS a.key FROM trials "    \
  "t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN artifacts f ON f.attempt = a.key " WHERE \
  "ORDER BY t.trial_id, a.number"

std::vector<ContentsReader::Artifact> artifacts_in(Query& rows) {
  std::vector<ContentsReader::Artifact> found;
  while (rows.step()) {
    found.push_back(
        {rows.text(0), rows.integer(1), rows.text(2), rows.maybe_integer(3), rows.integer(4) != 0});
  }
  return found;
}

}  // namespace

std::vector<ContentsReader::Artifact> ContentsReader::artifacts() const {
  return reading(*connection_, [&] {
    Query rows(*connection_, PETLAB_ARTIFACTS(""));
    return artifacts_in(rows);
  });
}

std::vector<ContentsReader::Artifact> ContentsReader::artifacts(const std::string& trial_id) const {
  return reading(*connection_, [&] {
    Query rows(*connection_, PETLAB_ARTIFACTS("WHERE t.trial_id = ?1 "));
    rows.with(trial_id);
    return artifacts_in(rows);
  });
}

std::int64_t ContentsReader::highest_attempt(const std::string& trial_id) const {
  return reading(*connection_, [&] {
    Query row(*connection_,
              "SELECT max(coalesce((SELECT max(number) FROM attempts a WHERE a.trial = t.key), 0), "
              "coalesce((SELECT max(number) FROM forgotten_attempts f WHERE f.trial = t.key), 0)) "
              "FROM trials t WHERE t.trial_id = ?1");
    row.with(trial_id);
    return row.step() ? row.integer(0) : 0;
  });
}

}  // namespace petlab::results
