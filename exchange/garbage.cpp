#include "exchange/garbage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "exchange/attempt_copy.h"
#include "exchange/garbage_files.h"
#include "exchange/incoming.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/recovery/checkpoints.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/recovery/evidence.h"
#include "protocol/trial_directory.h"
#include "results/attempt_events.h"
#include "results/contents.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;
using orchestrator::checkpoint_before;
using orchestrator::HostIdentity;
using orchestrator::in_queue;
using orchestrator::is_unfinished_directory;
using orchestrator::Liveness;
using orchestrator::LockFile;
using orchestrator::locks_folder;
using orchestrator::RunningOrchestrator;
using orchestrator::this_host;
using protocol::TrialDirectory;
using results::AttemptFacts;
using results::Outcome;
using results::TrialFacts;

/// Number of trials examined per transaction.
constexpr std::size_t kTrialsTogether = 32;
constexpr std::uintmax_t kMostEvents = std::uintmax_t{4} << 30;  // bytes

/// What the database records about a trial at one moment.
struct KnownTrial {
  const TrialFacts& facts;
  std::map<std::int64_t, std::string> artifacts;    // paths, by attempt number
  std::map<std::int64_t, results::Cursor> read_to;  // how far events were read, by attempt number
};

/// Finds the unneeded files of a trial, according to the database and its folder.
class TrialGarbage {
 public:
  TrialGarbage(const fs::path& runs, const GarbageOptions& options)
      : runs_(runs), options_(options) {}

  /// Adds to `garbage`. Returns why the trial is skipped, or std::nullopt.
  std::optional<std::string> look(const KnownTrial& trial, std::vector<Garbage>& garbage) const {
    const TrialFacts& facts = trial.facts;
    std::vector<Garbage> found;
    std::set<std::int64_t> known;
    for (const AttemptFacts& attempt : facts.attempts) known.insert(attempt.attempt.number);
    std::vector<fs::path> half_made;
    for (const fs::path& entry : base::entries_of(protocol::trial_folder(runs_, facts.trial_id))) {
      const std::string name = entry.filename().string();
      const auto number = protocol::attempt_number(name);
      if (number && !known.contains(*number)) {
        return fmt::format(
            "attempt {} is in the runs folder but not in the database: petlab db import adds it",
            *number);
      }
      if (is_unfinished_directory(name)) half_made.push_back(entry);
    }
    if (options_.leftovers) {
      std::sort(half_made.begin(), half_made.end());
      for (const fs::path& folder : half_made) {
        found.push_back({"leftover", facts.trial_id, 0, folder, bytes_of(folder),
                         "a petlab run was killed while it created it"});
      }
    }
    for (const AttemptFacts& attempt : facts.attempts) look_at(trial, attempt, found);
    if (found.empty()) return std::nullopt;
    for (const AttemptFacts& attempt : facts.attempts) {
      if (auto why = why_not_known(trial, attempt)) return why;
    }
    std::move(found.begin(), found.end(), std::back_inserter(garbage));
    return std::nullopt;
  }

 private:
  // Unread events may change which files are needed, and the folder may be another machine's
  // attempt with the same number.
  std::optional<std::string> why_not_known(const KnownTrial& trial,
                                           const AttemptFacts& attempt) const {
    const std::int64_t number = attempt.attempt.number;
    const TrialDirectory directory(runs_, trial.facts.trial_id, number);
    std::error_code error;
    if (!fs::exists(directory.folder(), error)) return std::nullopt;
    const std::string recorded = attempt_identity(attempt.begun);
    if (!recorded.empty() && attempt_identity(directory) != recorded) {
      return fmt::format(
          "attempt {} in the runs folder is not the one in the database: see petlab db check",
          number);
    }
    const results::Cursor& read = trial.read_to.at(number);
    if (read.closed) return std::nullopt;
    const std::string events = base::read_file_if_any(directory.events(), kMostEvents).value_or("");
    // Only lines that end with a newline count.
    if (events.find('\n', static_cast<std::size_t>(read.offset)) != std::string::npos) {
      return fmt::format(
          "attempt {} has events that the database has not read: petlab db import reads them",
          number);
    }
    return std::nullopt;
  }

  // If another process declared the attempt's end, its worker may still be alive: a queue that
  // stopped or forgot its job, petlab retry --declare-dead.
  bool is_over(const AttemptFacts& attempt) const {
    if (attempt.outcome == Outcome::finished || !attempt.kind.empty()) return true;
    if (in_queue(attempt.begun)) return false;
    return attempt.outcome != Outcome::lost ||
           liveness(attempt.begun, locks_folder(runs_), here_) == Liveness::dead;
  }

  void look_at(const KnownTrial& trial, const AttemptFacts& attempt,
               std::vector<Garbage>& found) const {
    if (!is_over(attempt)) return;
    const TrialFacts& facts = trial.facts;
    const TrialDirectory directory(runs_, facts.trial_id, attempt.attempt.number);
    const auto reported = trial.artifacts.find(attempt.attempt.number);
    const fs::path artifact = reported == trial.artifacts.end()
                                  ? fs::path()
                                  : directory.folder() / fs::path(reported->second);
    const bool counts = facts.result_attempt == attempt.attempt.number;
    if (options_.checkpoints) {
      look_at_checkpoints(facts, attempt, directory, counts ? artifact : fs::path(), found);
    }
    if (!options_.artifacts) return;
    const std::string why = why_no_artifact(facts, attempt);
    if (why.empty()) return;
    const fs::path file = attempt.outcome == Outcome::finished ? artifact : directory.artifact();
    std::error_code error;
    if (file.empty() || !fs::is_regular_file(fs::symlink_status(file, error))) return;
    found.push_back(
        {"artifact", facts.trial_id, attempt.attempt.number, file, bytes_of(file), why});
  }

  static std::string why_no_artifact(const TrialFacts& facts, const AttemptFacts& attempt) {
    const std::int64_t number = attempt.attempt.number;
    if (attempt.outcome != Outcome::finished) return "its attempt did not finish";
    if (facts.result_attempt == number) return {};
    if (number <= facts.discarded_after) return "its result was discarded";
    // Later attempts stay: if the result is discarded, a later one may become the result.
    if (facts.result_attempt && number < *facts.result_attempt) {
      return fmt::format("attempt {} has the result", *facts.result_attempt);
    }
    return {};
  }

  void look_at_checkpoints(const TrialFacts& facts, const AttemptFacts& attempt,
                           const TrialDirectory& directory, const fs::path& artifact,
                           std::vector<Garbage>& found) const {
    const std::string why = why_no_checkpoint(facts, attempt);
    const std::string last =
        attempt.checkpoint ? plain_path(directory.folder() / attempt.checkpoint->path) : "";
    // By name, and by the file that the name leads to.
    std::set<std::string> needed;
    if (!artifact.empty()) needed = {plain_path(artifact), real_path(artifact)};
    if (why.empty() && !last.empty()) {
      needed.insert({last, real_path(last)});
      // A resume falls back to the previous checkpoint.
      if (const auto before = checkpoint_before(*attempt.checkpoint, directory.events())) {
        const fs::path file = directory.folder() / before->path;
        needed.insert({plain_path(file), real_path(file)});
      }
    }
    for (const fs::path& folder : {directory.checkpoint(), directory.resume()}) {
      // A folder behind a link is skipped if anything in it may be needed.
      if (is_link(folder) && (why.empty() || leads_through(folder, needed))) continue;
      const bool kept_for_it = folder == directory.resume();
      // Other checkpoints are compared with the last one only if that is in this folder.
      const bool in_same_folder = !kept_for_it && last.starts_with(plain_path(folder) + "/");
      for (const fs::path& file : names_below(folder)) {
        const std::string name = plain_path(file);
        const std::string place = real_path(file.parent_path()) + "/" + file.filename().string();
        if (needed.contains(name) || needed.contains(place) || (why.empty() && !in_same_folder))
          continue;
        found.push_back({"checkpoint", facts.trial_id, attempt.attempt.number, file, bytes_of(file),
                         why.empty() ? "not one of its attempt's last two" : why});
      }
    }
  }

  static bool leads_through(const fs::path& folder, const std::set<std::string>& needed) {
    return std::any_of(needed.begin(), needed.end(), [&](const std::string& name) {
      return name.starts_with(plain_path(folder) + "/");
    });
  }

  // Mirrors the search for a checkpoint to resume (find_resume in planning/plan.cpp): never from an
  // attempt before one that finished, and never for a trial with a valid result.
  static std::string why_no_checkpoint(const TrialFacts& facts, const AttemptFacts& attempt) {
    const bool stands = facts.result_attempt && !results::is_to_renew(facts) &&
                        *facts.result_attempt > facts.retried_after;
    if (stands) return "its trial has a result";
    for (const AttemptFacts& later : facts.attempts) {
      if (later.outcome == Outcome::finished && later.attempt.number >= attempt.attempt.number) {
        return fmt::format("attempt {} finished", later.attempt.number);
      }
    }
    return {};
  }

  const fs::path& runs_;
  const GarbageOptions& options_;
  const HostIdentity here_ = this_host();
};

bool has_open_attempt(const TrialFacts& facts) {
  return std::any_of(facts.attempts.begin(), facts.attempts.end(),
                     [](const auto& attempt) { return attempt.outcome == Outcome::open; });
}

void refuse_other_runs(const fs::path& database, const fs::path& runs) {
  for (const RunningOrchestrator& one : running_orchestrators(runs, this_host())) {
    std::error_code error;
    if (fs::equivalent(one.database, database, error) && !error) continue;
    throw Error(
        fmt::format("{}: a run of another database is using it ({}, process {} on {}): the files "
                    "it needs are unknown here; wait until it ends",
                    runs.string(), one.database, one.pid, one.host));
  }
}

/// Leftovers of a killed merge, import or gc.
std::vector<Garbage> left_folders(const fs::path& runs) {
  std::vector<Garbage> found;
  std::error_code error;
  const fs::path incoming = incoming_folder(runs);
  if (fs::exists(incoming, error)) {
    found.push_back({"leftover", "", 0, incoming, bytes_of(incoming),
                     "a merge or an import was killed; repeat it to copy the rest"});
  }
  const fs::path garbage = garbage_folder(runs);
  if (fs::exists(garbage, error)) {
    found.push_back({"leftover", "", 0, garbage, bytes_of(garbage), "a petlab db gc was killed"});
  }
  return found;
}

class TrialsGarbage {
 public:
  TrialsGarbage(const fs::path& database, const fs::path& runs, const GarbageOptions& options)
      : contents_(database), runs_(runs), options_(options), trial_(runs_, options_) {}

  /// Calls `work` with a few trials' facts at a time.
  template <typename Work>
  void each_part(const results::Reader& reader, const Work& work) const {
    const std::vector<std::string> ids = contents_.trial_ids();
    for (std::size_t at = 0; at < ids.size(); at += kTrialsTogether) {
      const auto part = std::span(ids).subspan(at, std::min(kTrialsTogether, ids.size() - at));
      work(part, reader.trial_facts(part));
    }
  }

  /// Finds one trial's unneeded files in the current database. Records in `done` if it is skipped.
  std::vector<Garbage> look(const TrialFacts& facts, const results::Reader& reader,
                            Collected& done) const {
    std::vector<Garbage> found;
    if (has_open_attempt(facts)) {
      ++done.running;
      return found;
    }
    KnownTrial known{facts, {}, {}};
    for (const auto& one : contents_.artifacts(facts.trial_id)) {
      if (!one.path.empty()) known.artifacts[one.attempt] = one.path;
    }
    for (const AttemptFacts& attempt : facts.attempts) {
      known.read_to[attempt.attempt.number] = results::cursor_of(reader, attempt.attempt);
    }
    if (const auto why = trial_.look(known, found)) {
      done.left.push_back({facts.trial_id, *why});
      return {};
    }
    return found;
  }

 private:
  const results::ContentsReader contents_;
  const fs::path runs_;
  const GarbageOptions options_;
  const TrialGarbage trial_;
};

/// Holds files that are about to be deleted.
class GarbageFolder {
 public:
  explicit GarbageFolder(const fs::path& runs) : folder_(garbage_folder(runs)) { empty(); }
  ~GarbageFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  GarbageFolder(const GarbageFolder&) = delete;
  GarbageFolder& operator=(const GarbageFolder&) = delete;

  void take(const fs::path& file) {
    // An attempt's folder cannot have this name.
    const fs::path to = folder_ / fmt::format("{}-{}", ++moved_, file.filename().string());
    if (std::rename(file.c_str(), to.c_str()) == 0 || errno == ENOENT) return;
    const int error = errno;
    // A trial's folder may be a link to another disk.
    std::error_code removed;
    if (error == EXDEV) fs::remove_all(file, removed);
    if (error == EXDEV && !removed) return;
    throw Error(fmt::format("{}: cannot be removed: {}", file.string(),
                            removed ? removed.message() : std::strerror(error)));
  }
  /// Deletes all files moved here.
  void empty() {
    std::error_code error;
    fs::remove_all(folder_, error);
    if (!error) fs::create_directory(folder_, error);
    if (error) {
      throw Error(fmt::format("{}: cannot be created: {}", folder_.string(), error.message()));
    }
  }

 private:
  fs::path folder_;
  std::int64_t moved_ = 0;
};

// Removes empty checkpoint folders. Those that a worker has filled again stay.
void remove_empty_folders(const fs::path& runs, const std::vector<Garbage>& garbage) {
  std::set<fs::path> folders;
  for (const Garbage& one : garbage) {
    if (one.kind != "checkpoint") continue;
    const fs::path attempt = TrialDirectory(runs, one.trial, one.attempt).folder();
    for (fs::path folder = one.file.parent_path();
         folder != attempt && folder != folder.root_path(); folder = folder.parent_path()) {
      folders.insert(folder);
    }
  }
  // Inner folders first.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    std::error_code ignored;
    fs::remove(*folder, ignored);
  }
}

}  // namespace

fs::path garbage_folder(const fs::path& runs) { return runs / ".garbage"; }

Collected find_garbage(const fs::path& database, const fs::path& runs,
                       const GarbageOptions& options) {
  refuse_other_runs(database, runs);
  const results::Reader reader(database);
  const TrialsGarbage trials(database, runs, options);
  Collected done;
  FreedBytes freed;
  trials.each_part(reader, [&](std::span<const std::string>, const std::vector<TrialFacts>& facts) {
    for (const TrialFacts& one : facts) {
      for (Garbage& found : trials.look(one, reader, done))
        done.garbage.push_back(std::move(found));
    }
  });
  if (options.leftovers && !LockFile::is_held(incoming_lock(runs))) {
    for (Garbage& found : left_folders(runs)) done.garbage.push_back(std::move(found));
  }
  for (const Garbage& one : done.garbage) freed.add(one.file);
  done.bytes = freed.total();
  return done;
}

Collected collect_garbage(const fs::path& database, const fs::path& runs,
                          const GarbageOptions& options) {
  const LockFile lock = lock_incoming(runs);
  refuse_other_runs(database, runs);
  results::Store store(database);
  const TrialsGarbage trials(database, runs, options);
  Collected done;
  FreedBytes freed;
  if (options.leftovers) {
    for (const Garbage& one : left_folders(runs)) {
      freed.add(one.file);
      done.garbage.push_back(one);
    }
    std::error_code error;
    fs::remove_all(incoming_folder(runs), error);
    if (error) {
      throw Error(fmt::format("{}: cannot be removed: {}", incoming_folder(runs).string(),
                              error.message()));
    }
  }
  GarbageFolder trash(runs);
  trials.each_part(
      store.read(), [&](std::span<const std::string> ids, const std::vector<TrialFacts>& facts) {
        Collected looked;
        const bool any = std::any_of(facts.begin(), facts.end(), [&](const TrialFacts& one) {
          return !trials.look(one, store.read(), looked).empty();
        });
        if (!any) {
          done.running += looked.running;
          done.left.insert(done.left.end(), looked.left.begin(), looked.left.end());
          return;
        }
        std::vector<Garbage> removed;
        {
          // The transaction keeps runs from claiming a trial. It stores nothing.
          const results::Batch batch = store.begin();
          // A run may have started since the first check.
          refuse_other_runs(database, runs);
          for (const TrialFacts& now : store.read().trial_facts(ids)) {
            for (Garbage& one : trials.look(now, store.read(), done))
              removed.push_back(std::move(one));
          }
          for (const Garbage& one : removed) {
            freed.add(one.file);
            trash.take(one.file);
          }
          remove_empty_folders(runs, removed);
        }
        done.garbage.insert(done.garbage.end(), removed.begin(), removed.end());
        trash.empty();
      });
  done.bytes = freed.total();
  return done;
}

}  // namespace petlab::exchange
