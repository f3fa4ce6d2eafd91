#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "base/shallow_json.h"
#include "results/connection.h"
#include "results/snapshot.h"
#include "results/store.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;
using internal::reading;

// For a trial t: the last attempt to be recomputed, and the last discarded one.
#define PETLAB_RENEWALS                                                                           \
  "coalesce((SELECT max(after_attempt) FROM renewals WHERE trial = t.key), 0), coalesce((SELECT " \
  "max(after_attempt) FROM renewals WHERE trial = t.key AND discarded), 0)"

// For a trial t: why a rule stopped it, if that is why it is cancelled.
#define PETLAB_STOPPED "(SELECT why FROM early_stops WHERE trial = t.key AND t.cancelled)"

#define PETLAB_ATTEMPT_FIELDS                                                                      \
  "a.key, t.trial_id, a.number, a.sweep, a.owner, a.launcher, a.\"commit\", a.begun_at, "          \
  "a.parent, a.resume_step, a.resume_seq, a.resume_checkpoint, a.host, a.boot_id, "                \
  "a.pid_namespace, a.device, a.pid, a.pid_start, a.job, a.launched_at, a.outcome, a.event_kind, " \
  "a.reason, a.exit_code, a.signal, a.log_tail, a.started_at, a.ended_at, a.worker, "              \
  "a.worker_version, a.numerics, a.backbone_digest, a.data_digests, a.checkpoint_step, "           \
  "a.checkpoint_seq, a.checkpoint_path, a.peak_memory_mib, a.device_memory_mib, a.train_seconds, " \
  "a.note, a.retries "
#define PETLAB_ATTEMPTS \
  "SELECT " PETLAB_ATTEMPT_FIELDS "FROM attempts a JOIN trials t ON t.key = a.trial "

// Parses each text once, because many attempts have the same data.
class Digests {
 public:
  const std::map<std::string, std::string>& in(const std::string& text) {
    if (known_.size() > kMostKnown) known_.clear();
    const auto [known, is_new] = known_.try_emplace(text);
    if (is_new) {
      const auto digests = base::shallow_json_or_none(text);
      if (digests.is_object()) {
        for (const auto& [task, digest] : digests.items()) {
          if (digest.is_string()) known->second[task] = digest.get<std::string>();
        }
      }
    }
    return known->second;
  }

 private:
  static constexpr std::size_t kMostKnown = 1024;
  std::unordered_map<std::string, std::map<std::string, std::string>> known_;
};

/// Reads a row that begins with PETLAB_ATTEMPT_FIELDS.
AttemptFacts attempt_from(const Query& row, Digests& digests) {
  int at = 0;
  const auto integer = [&] { return row.integer(at++); };
  const auto text = [&] { return row.text(at++); };
  const auto number = [&]() -> std::optional<int> {
    const auto value = row.maybe_integer(at++);
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  AttemptFacts facts;
  facts.attempt = {row.integer(0), row.text(1), row.integer(2)};
  at = 3;
  facts.begun.trial_id = facts.attempt.trial_id;
  facts.begun.sweep = text();
  facts.begun.owner = text();
  facts.begun.launcher = text();
  facts.begun.commit = text();
  facts.begun.time = row.real(at++);
  if (!row.is_null(at)) {
    facts.begun.resume = protocol::Resume{row.integer(at), row.integer(at + 1), row.integer(at + 2),
                                          row.text(at + 3)};
  }
  at += 4;
  facts.begun.host = text();
  facts.begun.boot_id = text();
  facts.begun.pid_namespace = text();
  facts.begun.device = text();
  if (!row.is_null(at + 3)) {
    Launch launch;
    launch.pid = integer();
    launch.pid_start = integer();
    launch.job = text();
    launch.time = row.real(at++);
    launch.host = facts.begun.host;
    launch.boot_id = facts.begun.boot_id;
    launch.pid_namespace = facts.begun.pid_namespace;
    launch.device = facts.begun.device;
    facts.launch = std::move(launch);
  } else {
    at += 4;
  }
  facts.outcome = outcome_from(text()).value_or(Outcome::open);
  facts.kind = text();
  facts.reason = text();
  facts.exit_code = number();
  facts.signal = number();
  facts.log_tail = text();
  facts.started_at = row.maybe_real(at++);
  facts.ended_at = row.maybe_real(at++);
  facts.worker = text();
  facts.worker_version = text();
  facts.numerics = text();
  facts.backbone_digest = text();
  facts.data_digests = digests.in(text());
  if (!row.is_null(at)) {
    facts.checkpoint = CheckpointAt{row.integer(at), row.integer(at + 1), row.text(at + 2)};
  }
  at += 3;
  facts.peak_memory_mib = row.maybe_real(at++);
  facts.device_memory_mib = row.maybe_real(at++);
  facts.train_seconds = row.maybe_real(at++);
  facts.note = text();
  facts.begun.retries = row.maybe_integer(at++);
  return facts;
}

}  // namespace

Reader::Reader(const std::filesystem::path& database, std::chrono::milliseconds busy_timeout)
    : connection_(std::make_shared<Connection>(database, Connection::Mode::read,
                                               OpenOptions{.busy_timeout = busy_timeout})) {}
Reader::Reader(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

std::vector<TrialFacts> Reader::trial_facts(std::span<const std::string> trial_ids) const {
  return reading(*connection_, [&] {
    std::vector<TrialFacts> all;
    all.reserve(trial_ids.size());
    Digests digests;
    Query trial(*connection_,
                "SELECT key, cancelled, retried_after, (SELECT number FROM attempts WHERE key = "
                "t.result_attempt), coalesce((SELECT changes FROM trial_changes WHERE trial = "
                "t.key), 0), " PETLAB_RENEWALS ", " PETLAB_STOPPED
                " FROM trials t WHERE trial_id = ?1");
    Query attempts(*connection_, PETLAB_ATTEMPTS "WHERE a.trial = ?1 ORDER BY a.number");
    for (const std::string& id : trial_ids) {
      TrialFacts& facts = all.emplace_back();
      facts.trial_id = id;
      if (trial.with(id).step()) {
        facts.known = true;
        facts.cancelled = trial.integer(1) != 0;
        facts.retried_after = trial.integer(2);
        facts.result_attempt = trial.maybe_integer(3);
        facts.changes = trial.integer(4);
        facts.renewed_after = trial.integer(5);
        facts.discarded_after = trial.integer(6);
        facts.stopped_early = trial.text(7);
        attempts.with(trial.integer(0));
        while (attempts.step()) facts.attempts.push_back(attempt_from(attempts, digests));
        attempts.again();
      }
      trial.again();
    }
    return all;
  });
}

std::vector<AttemptFacts> Reader::open_attempts() const {
  return reading(*connection_, [&] {
    std::vector<AttemptFacts> all;
    Query attempts(*connection_, PETLAB_ATTEMPTS "WHERE a.outcome = 'open' ORDER BY a.key");
    Digests digests;
    while (attempts.step()) all.push_back(attempt_from(attempts, digests));
    return all;
  });
}

std::vector<AttemptFacts> Reader::attempts_of_owner(const std::string& owner) const {
  return reading(*connection_, [&] {
    std::vector<AttemptFacts> all;
    Query attempts(*connection_, PETLAB_ATTEMPTS "WHERE a.owner = ?1 ORDER BY a.key");
    attempts.with(owner);
    Digests digests;
    while (attempts.step()) all.push_back(attempt_from(attempts, digests));
    return all;
  });
}

std::optional<AttemptFacts> Reader::attempt_facts(const std::string& trial_id,
                                                  std::int64_t number) const {
  return reading(*connection_, [&]() -> std::optional<AttemptFacts> {
    Query attempt(*connection_, PETLAB_ATTEMPTS "WHERE t.trial_id = ?1 AND a.number = ?2");
    if (!attempt.with(trial_id).with(number).step()) return std::nullopt;
    Digests digests;
    return attempt_from(attempt, digests);
  });
}

std::optional<SweepRow> Reader::sweep(const std::string& name) const {
  return reading(*connection_, [&]() -> std::optional<SweepRow> {
    Query sweep(*connection_,
                "SELECT key, about, file, digest, overrides FROM sweeps WHERE name = ?1");
    if (!sweep.with(name).step()) return std::nullopt;
    SweepRow row{name, sweep.text(1), sweep.text(2), sweep.text(3), {}};
    const auto overrides = base::shallow_json_or_none(sweep.text(4));
    if (overrides.is_array()) row.overrides = overrides.get<std::vector<std::string>>();
    Query members(
        *connection_,
        "SELECT t.trial_id, m.variant FROM sweep_trials m JOIN trials t ON t.key = m.trial "
        "WHERE m.sweep = ?1 ORDER BY m.place");
    members.with(sweep.integer(0));
    while (members.step()) row.members.push_back({members.text(0), members.text(1)});
    return row;
  });
}

std::vector<std::string> Reader::finished_members(const std::string& sweep) const {
  return reading(*connection_, [&] {
    std::vector<std::string> ids;
    Query rows(*connection_,
               "SELECT trial_id FROM trials WHERE result_attempt IS NOT NULL AND key IN (SELECT "
               "trial FROM sweep_trials JOIN sweeps s ON s.key = sweep WHERE s.name = ?1 UNION "
               "SELECT trial FROM former_sweep_trials JOIN sweeps s ON s.key = sweep WHERE s.name "
               "= ?1)");
    rows.with(sweep);
    while (rows.step()) ids.push_back(rows.text(0));
    return ids;
  });
}

std::optional<std::filesystem::path> Reader::runs_folder() const {
  return reading(*connection_, [&]() -> std::optional<std::filesystem::path> {
    Query row(*connection_, "SELECT value FROM settings WHERE name = 'runs'");
    if (!row.step()) return std::nullopt;
    const std::filesystem::path& file = connection_->file();
    // If the database is a link, the path is relative to its target's folder. Otherwise it stays as
    // short as the user wrote it.
    const std::filesystem::path folder = std::filesystem::is_symlink(file)
                                             ? std::filesystem::canonical(file).parent_path()
                                             : file.parent_path();
    return folder / row.text(0);
  });
}

void Reader::each_member(const std::string& sweep,
                         const std::function<void(const SweepRow::Member&, const TrialRow&,
                                                  const TrialFacts&)>& take) const {
  reading(*connection_, [&] {
    constexpr int kMemberColumn = 41;  // first column after those of the attempt
    // Sorts the members before joining the wide rows: sorting those would take more than a gigabyte
    // for a million members. CROSS JOIN preserves the order.
    Query rows(
        *connection_,
        "SELECT " PETLAB_ATTEMPT_FIELDS
        ", m.place, m.variant, t.trial_id, t.cancelled, t.retried_after, (SELECT number FROM "
        "attempts WHERE key = t.result_attempt), t.config, t.backbone_digest, t.bls_bits, "
        "t.stored_bits, " PETLAB_RENEWALS ", " PETLAB_STOPPED
        " FROM (SELECT trial, variant, place FROM sweep_trials WHERE sweep = (SELECT key FROM "
        "sweeps WHERE name = ?1) ORDER BY place LIMIT -1) m CROSS JOIN trials t ON t.key = m.trial "
        "LEFT JOIN attempts a ON a.trial = t.key WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h "
        "WHERE h.trial = t.key)");
    rows.with(sweep);
    std::optional<std::int64_t> place;
    SweepRow::Member member;
    TrialRow trial;
    TrialFacts facts;
    Digests digests;
    const auto pass_member = [&] {
      std::sort(facts.attempts.begin(), facts.attempts.end(),
                [](const auto& a, const auto& b) { return a.attempt.number < b.attempt.number; });
      take(member, trial, facts);
    };
    while (rows.step()) {
      if (place != rows.integer(kMemberColumn)) {
        if (place) pass_member();
        if (place > rows.integer(kMemberColumn))
          throw std::logic_error("members came out of their order");
        place = rows.integer(kMemberColumn);
        member = {rows.text(kMemberColumn + 2), rows.text(kMemberColumn + 1)};
        facts = {};
        facts.trial_id = member.trial_id;
        facts.known = true;
        facts.cancelled = rows.integer(kMemberColumn + 3) != 0;
        facts.retried_after = rows.integer(kMemberColumn + 4);
        facts.result_attempt = rows.maybe_integer(kMemberColumn + 5);
        facts.renewed_after = rows.integer(kMemberColumn + 10);
        facts.discarded_after = rows.integer(kMemberColumn + 11);
        facts.stopped_early = rows.text(kMemberColumn + 12);
        trial = {member.trial_id, rows.text(kMemberColumn + 6), rows.text(kMemberColumn + 7),
                 rows.maybe_real(kMemberColumn + 8), rows.maybe_integer(kMemberColumn + 9)};
      }
      if (!rows.is_null(0)) facts.attempts.push_back(attempt_from(rows, digests));
    }
    if (place) pass_member();
  });
}

std::vector<std::string> Reader::variants(const std::string& sweep,
                                          const std::string& trial_id) const {
  return reading(*connection_, [&] {
    std::vector<std::string> variants;
    Query rows(*connection_,
               "SELECT m.variant FROM sweeps w CROSS JOIN trials t CROSS JOIN sweep_trials m ON "
               "m.sweep = w.key AND m.trial = t.key WHERE w.name = ?1 AND t.trial_id = ?2 AND "
               "m.variant != '' ORDER BY m.place");
    rows.with(sweep).with(trial_id);
    while (rows.step()) variants.push_back(rows.text(0));
    return variants;
  });
}

std::vector<std::string> Reader::sweep_names() const {
  return reading(*connection_, [&] {
    std::vector<std::string> names;
    Query rows(*connection_, "SELECT name FROM sweeps ORDER BY key");
    while (rows.step()) names.push_back(rows.text(0));
    return names;
  });
}

std::optional<TrialRow> Reader::trial(const std::string& trial_id) const {
  return reading(*connection_, [&]() -> std::optional<TrialRow> {
    Query row(
        *connection_,
        "SELECT config, backbone_digest, bls_bits, stored_bits FROM trials WHERE trial_id = ?1");
    if (!row.with(trial_id).step()) return std::nullopt;
    return TrialRow{trial_id, row.text(0), row.text(1), row.maybe_real(2), row.maybe_integer(3)};
  });
}

std::vector<std::string> Reader::trials_with_prefix(const std::string& prefix, int limit) const {
  return reading(*connection_, [&] {
    std::vector<std::string> ids;
    // An index range up to the last Unicode character. Unlike a pattern, it has no special
    // characters that a user could type.
    Query rows(*connection_,
               "SELECT trial_id FROM trials WHERE trial_id >= ?1 AND trial_id <= ?1 || "
               "char(1114111) ORDER BY trial_id LIMIT ?2");
    rows.with(prefix).with(std::int64_t{limit});
    while (rows.step()) ids.push_back(rows.text(0));
    return ids;
  });
}

std::int64_t Reader::data_version() const {
  return reading(*connection_, [&] { return connection_->data_version(); });
}

}  // namespace petlab::results
