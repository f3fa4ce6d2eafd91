#include "orchestrator/records/rebuild.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/records/remark.h"
#include "orchestrator/records/sweep_record.h"
#include "protocol/attempt_log.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {
namespace {

/// Limits of a transaction, in attempts and approximately in events. Each commit waits for the
/// disk, but all rows of a transaction are in memory before.
constexpr std::size_t kAttemptsAtOnce = 256;
constexpr std::int64_t kEventsAtOnce = 100'000;

std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) throw Error(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// The database row of a trial that is in no sweep's file. Keeps the file's JSON, and with it the
/// fields of other petlab versions.
results::TrialRow trial_row(const protocol::TrialDirectory& directory) {
  const std::string text = base::read_file(directory.trial_json(), std::uintmax_t{16} << 20);
  nlohmann::ordered_json json;
  try {
    json = base::parse_shallow_ordered_json(text, directory.trial_json().string());
  } catch (const nlohmann::json::exception&) {
    json = nullptr;
  }
  const auto config = json.is_object() ? json.find("config") : json.end();
  if (!json.is_object() || config == json.end() || !config->is_object()) {
    throw Error(fmt::format("{}: found no configuration, expected a JSON object with `config`",
                            directory.trial_json().string()));
  }
  results::TrialRow row;
  row.trial_id = directory.trial_id();
  row.config = config->dump();
  if (const auto digests = json.find("digests"); digests != json.end() && digests->is_object()) {
    row.backbone_digest = digests->value("backbone", "");
  }
  return row;
}

/// Reads a runs folder into a store. Reads files before each transaction and only stores in it,
/// because other processes wait for it.
class RunsReader {
 public:
  RunsReader(results::Store& store, const std::filesystem::path& runs,
             const std::function<void(const RunsSummary&)>& progress, Configurations configurations)
      : store_(store),
        runs_(runs),
        progress_(progress),
        configurations_(configurations),
        ingest_(store, runs, Ingest::Ends::as_found) {}

  RunsSummary read() {
    const std::vector<std::filesystem::path> entries = sorted_entries(runs_);
    // If the recorded runs folder exists, this call merges another folder's results, so the record
    // stays.
    const auto known = store_.read().runs_folder();
    if (!known || !std::filesystem::is_directory(*known)) {
      to_store_.push_back([folder = std::filesystem::absolute(runs_)](results::Batch& batch) {
        batch.record_runs_folder(folder);
      });
    }
    // Sweeps come first: their configurations take precedence over those of attempts.
    read_sweeps();
    std::vector<std::string> trials;
    for (const auto& entry : entries) {
      if (entry == protocol::sweeps_folder(runs_) || !std::filesystem::is_directory(entry))
        continue;
      trials.push_back(entry.filename().string());
    }
    for (const std::string& trial : trials) read_trial(trial);
    store_attempts();
    for (const std::string& trial : decided_) leaving_out([&] { read_decisions_of(trial); });
    for (const std::string& trial : remarked_) leaving_out([&] { read_remarks_of({trial, ""}); });
    for (const std::string& sweep : store_.read().sweep_names()) {
      leaving_out([&] { read_remarks_of({"", sweep}); });
    }
    flush();
    return std::move(summary_);
  }

 private:
  /// The contents of an attempt's files, except for its events.
  struct Found {
    protocol::TrialDirectory directory;
    protocol::AttemptLog log;
    std::optional<results::TrialRow> trial;  // absent if the store has it
  };

  void read_trial(const std::string& trial_id) {
    std::vector<std::int64_t> numbers;
    for (const auto& entry : sorted_entries(protocol::trial_folder(runs_, trial_id))) {
      if (const auto number = protocol::attempt_number(entry.filename().string())) {
        numbers.push_back(*number);
      } else if (entry == protocol::decisions_file(runs_, trial_id)) {
        decided_.push_back(trial_id);
      } else if (entry == protocol::remarks_file(runs_, trial_id)) {
        remarked_.push_back(trial_id);
      }
    }
    if (numbers.empty()) return;
    std::sort(numbers.begin(), numbers.end());
    ++summary_.trials;
    // Recorded by a sweep or an earlier call. This skips reading trial.json, which takes longer
    // than all other files of an attempt.
    const bool known =
        configurations_ == Configurations::unknown && store_.read().trial(trial_id).has_value();
    for (const std::int64_t number : numbers) {
      const protocol::TrialDirectory directory(runs_, trial_id, number);
      leaving_out([&] {
        protocol::AttemptLog log = protocol::read_attempt_log(directory);
        summary_.left_out.insert(summary_.left_out.end(), log.left_out.begin(), log.left_out.end());
        std::optional<results::TrialRow> row;
        if (!known) row = trial_row(directory);
        found_.push_back({directory, std::move(log), std::move(row)});
      });
      if (found_.size() == kAttemptsAtOnce) store_attempts();
    }
  }

  /// Stores the attempts first, because their rows record how far their events were read.
  void store_attempts() {
    const std::vector<Found> found = std::exchange(found_, {});
    std::vector<results::AttemptRef> attempts;
    to_store_.push_back([&](results::Batch& batch) {
      for (const Found& one : found) {
        // An earlier attempt in this batch may have added the trial.
        if (one.trial && !store_.read().trial(one.trial->trial_id)) batch.record_trial(*one.trial);
        attempts.push_back(store_attempt(batch, one.directory, one.log));
      }
    });
    flush();
    for (const results::AttemptRef& attempt : attempts) {
      leaving_out([&] {
        read_events(attempt);
        ++summary_.attempts;
      });
    }
    flush();
    for (const results::AttemptRef& attempt : attempts) ingest_.forget(attempt);
    if (progress_) progress_(summary_);
  }

  void read_events(const results::AttemptRef& attempt) {
    for (bool more = true; more;) {
      const auto events =
          std::make_shared<NewEvents>(ingest_.look(attempt, Ingest::kMaxBytes, Writer::gone));
      more = events->update().more;
      summary_.events += events->update().lines;
      pending_events_ += events->update().lines;
      to_store_.push_back([this, events](results::Batch& batch) { ingest_.store(batch, *events); });
      if (more || pending_events_ >= kEventsAtOnce) flush();
    }
  }

  /// Calls `read` and records errors in left_out. Database errors are rethrown.
  template <typename Read>
  void leaving_out(const Read& read) {
    try {
      read();
    } catch (const results::Error&) {
      throw;
    } catch (const std::runtime_error& error) {
      summary_.left_out.push_back(error.what());
    }
  }

  void read_sweeps() {
    const std::filesystem::path folder = protocol::sweeps_folder(runs_);
    if (!std::filesystem::is_directory(folder)) return;
    std::vector<SweepFile> files;
    for (const auto& entry : sorted_entries(folder)) {
      if (entry.extension() == ".yaml" && entry.filename().string().front() != '.') {
        leaving_out([&] { read_sweep_text(entry); });
      }
      if (entry.extension() != ".jsonl" || entry.filename().string().front() == '.') continue;
      leaving_out([&] { files.push_back(read_sweep_file(entry)); });
    }
    // The latest sweep of a name counts, as does the latest text of a trial's configuration.
    std::stable_sort(files.begin(), files.end(),
                     [](const SweepFile& a, const SweepFile& b) { return a.time < b.time; });
    for (const SweepFile& file : files) {
      to_store_.push_back(
          [&](results::Batch& batch) { batch.record_sweep(file.sweep, file.trials, file.time); });
      flush();
      ++summary_.sweeps;
    }
  }

  void read_sweep_text(const std::filesystem::path& file) {
    const std::string text = base::read_file(file, std::uintmax_t{64} << 20);
    const std::string digest = base::sha256(text);
    if (file.filename() != protocol::sweep_text_file(runs_, digest).filename()) {
      throw Error(fmt::format("{}: its content has digest {}, must be the one in its name",
                              file.string(), digest));
    }
    to_store_.push_back(
        [digest, text](results::Batch& batch) { batch.record_sweep_text(digest, text); });
  }

  void read_decisions_of(const std::string& trial_id) {
    const std::vector<protocol::Decision> decisions =
        protocol::read_decisions(runs_, trial_id, &summary_.left_out);
    if (decisions.empty()) return;
    if (!store_.read().trial(trial_id)) {
      summary_.left_out.push_back(
          fmt::format("{}: no sweep and no attempt records the trial's configuration",
                      protocol::decisions_file(runs_, trial_id).string()));
      return;
    }
    to_store_.push_back([trial_id, decisions](results::Batch& batch) {
      store_decisions(batch, trial_id, decisions);
    });
  }

  void read_remarks_of(const results::RemarkSubject& subject) {
    const std::filesystem::path file = remarks_file_of(runs_, subject);
    const std::vector<protocol::Remark> remarks = protocol::read_remarks(file, &summary_.left_out);
    if (remarks.empty()) return;
    if (!subject.trial_id.empty() && !store_.read().trial(subject.trial_id)) {
      summary_.left_out.push_back(fmt::format(
          "{}: no sweep and no attempt records the trial's configuration", file.string()));
      return;
    }
    to_store_.push_back([subject, remarks](results::Batch& batch) {
      for (const protocol::Remark& remark : remarks) {
        results::record_remark(batch, subject, remark);
      }
    });
  }

  void flush() {
    pending_events_ = 0;
    if (to_store_.empty()) return;
    results::Batch batch = store_.begin();
    for (const auto& write : std::exchange(to_store_, {})) write(batch);
    batch.commit();
  }

  results::Store& store_;
  const std::filesystem::path& runs_;
  const std::function<void(const RunsSummary&)>& progress_;
  const Configurations configurations_;
  Ingest ingest_;
  std::vector<Found> found_;
  std::vector<std::string> decided_;   // trials with user decisions
  std::vector<std::string> remarked_;  // trials with tags or notes
  std::vector<std::function<void(results::Batch&)>> to_store_;
  std::int64_t pending_events_ = 0;
  RunsSummary summary_;
};

}  // namespace

results::AttemptRef store_attempt(results::Batch& batch, const protocol::TrialDirectory& directory,
                                  const protocol::AttemptLog& log) {
  protocol::AttemptBegun begun;
  begun.trial_id = directory.trial_id();
  const results::AttemptRef attempt =
      batch.record_attempt(log.begun.value_or(begun), directory.attempt());
  if (log.launch) batch.record_launch(attempt, *log.launch);
  if (log.ending) batch.record_ending(attempt, *log.ending);
  return attempt;
}

RunsSummary ingest_runs(results::Store& store, const std::filesystem::path& runs,
                        const std::function<void(const RunsSummary&)>& progress,
                        Configurations read) {
  return RunsReader(store, runs, progress, read).read();
}

RunsSummary rebuild(const std::filesystem::path& runs, const std::filesystem::path& database,
                    const std::function<void(const RunsSummary&)>& progress) {
  if (std::filesystem::exists(database)) {
    throw std::invalid_argument(fmt::format(
        "{}: the database exists; move it, or name another with --db", database.string()));
  }
  const std::filesystem::path folder = base::folder_of(database);
  const std::filesystem::path temporary =
      folder / fmt::format(".{}.rebuilt-{}", database.filename().string(), getpid());
  const auto remove = [&] {
    for (const char* suffix : {"", "-wal", "-shm"}) unlink((temporary.string() + suffix).c_str());
  };
  remove();
  try {
    RunsSummary summary;
    {
      results::OpenOptions options;
      options.alone = true;  // private until complete
      results::Store store(temporary, options);
      summary = ingest_runs(store, runs, progress);
    }
    if (summary.sweeps == 0 && summary.trials == 0 && summary.attempts == 0) {
      throw Error(
          fmt::format("{}: found no sweep and no attempt, so {} cannot be rebuilt{}", runs.string(),
                      database.string(),
                      summary.left_out.empty()
                          ? ""
                          : fmt::format("; skipped: {}", fmt::join(summary.left_out, "; "))));
    }
    // Closing the database merges its log into the file and removes it. SQLite reports no error if
    // that fails.
    if (std::filesystem::exists(temporary.string() + "-wal")) {
      throw Error(
          fmt::format("{}: cannot be created: the disk is full or unreadable", database.string()));
    }
    // The database must not have results that a power cut takes away from their files.
    base::sync_file_system(runs);
    const base::FileDescriptor written(open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
    const int unsynced = !written || fsync(written.get()) != 0 ? errno : 0;
    const int error = unsynced != 0 ? unsynced : base::give_new_name(temporary, database);
    if (error != 0) {
      throw Error(
          fmt::format("{}: cannot be created: {}", database.string(), std::strerror(error)));
    }
    base::sync_folder(folder);
    return summary;
  } catch (...) {
    remove();
    throw;
  }
}

}  // namespace petlab::orchestrator
