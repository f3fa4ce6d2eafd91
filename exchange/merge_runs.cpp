#include "exchange/merge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "exchange/attempt_copy.h"
#include "exchange/differences.h"
#include "exchange/foreign_decisions.h"
#include "exchange/foreign_remarks.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/records/sweep_record.h"
#include "orchestrator/recovery/evidence.h"
#include "protocol/attempt_log.h"
#include "protocol/code_record.h"
#include "results/contents.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;
using protocol::Decision;
using protocol::TrialDirectory;
using results::AttemptFacts;
using results::TrialFacts;

/// Number of trials read together and renamed in one transaction.
constexpr std::size_t kTrialsAtOnce = 32;
constexpr std::uintmax_t kMostSweepText = std::uintmax_t{64} << 20;

results::OpenOptions unsynced() {
  results::OpenOptions options;
  options.synced = false;  // a scratch database, rebuilt by each merge
  return options;
}

const AttemptFacts* open_one(const TrialFacts& facts) {
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.outcome == results::Outcome::open) return &attempt;
  }
  return nullptr;
}

const AttemptFacts* attempt_of(const TrialFacts& facts, std::int64_t number) {
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == number) return &attempt;
  }
  return nullptr;
}

/// Attempts of one trial, copied and ready to be moved into the runs folder.
struct StagedTrial {
  struct Attempt {
    AttemptCopy copy;
    fs::path folder;
  };
  std::string trial_id;
  std::int64_t changes = 0;  // the local trial's change counter when it was planned
  results::TrialRow row;
  std::vector<Attempt> attempts;
  std::vector<Decision> decisions;
  std::uintmax_t bytes = 0;
};

class TakeOver {
 public:
  TakeOver(results::Store& store, const Incoming& incoming, const fs::path& other_runs,
           const TakeOverOptions& options)
      : store_(store),
        runs_(incoming.runs()),
        staging_(incoming.folder()),
        other_runs_(other_runs),
        options_(options),
        ingest_(store, runs_, orchestrator::Ingest::Ends::as_found),
        other_(staging_ / "other.db", unsynced()) {}

  MergeResult run() {
    // Imports folders that a killed merge renamed, and anything else that the database lacks.
    base::sync_file_system(runs_);
    orchestrator::ingest_runs(store_, runs_);
    const orchestrator::RunsSummary summary = orchestrator::ingest_runs(other_, other_runs_);
    if (summary.sweeps == 0 && summary.trials == 0 && summary.attempts == 0) {
      throw Error(fmt::format("{}: found no sweep and no attempt, expected a runs folder{}",
                              options_.source,
                              summary.left_out.empty() ? "" : ": " + summary.left_out.front()));
    }
    for (const std::string& text : summary.left_out) merged_.left.push_back({"", text});
    take_sweep_texts();
    for (const std::string& name : other_.read().sweep_names()) take_sweep(name);
    const results::ContentsReader ours(store_.file());
    const results::ContentsReader theirs(other_.file());
    for (const auto& artifact : ours.artifacts()) {
      if (artifact.counts) artifact_names_[artifact.trial_id] = artifact.path;
    }
    ours_ = &ours;
    theirs_ = &theirs;
    const std::vector<std::string> ids = theirs.trial_ids();
    for (std::size_t at = 0; at < ids.size(); at += kTrialsAtOnce) {
      const auto part = std::span(ids).subspan(at, std::min(kTrialsAtOnce, ids.size() - at));
      const std::vector<TrialFacts> here = store_.read().trial_facts(part);
      const std::vector<TrialFacts> there = other_.read().trial_facts(part);
      for (std::size_t i = 0; i < part.size(); ++i) look_at(here[i], there[i]);
      place();
    }
    merged_.remarks = take_remarks(store_, runs_, other_.read(), other_runs_);
    look_for_what_the_folder_lacks();
    return std::move(merged_);
  }

 private:
  void leave(const std::string& trial_id, std::string text) {
    merged_.left.push_back({trial_id, std::move(text)});
  }
  void conflict(const std::string& trial_id, std::string text) {
    merged_.conflicts.push_back({trial_id, std::move(text)});
  }

  /// Also takes the records of code and, of searches that have none here, the points.
  void take_sweep_texts() {
    for (const fs::path& file : base::entries_of(protocol::sweeps_folder(other_runs_))) {
      const fs::path here = protocol::sweeps_folder(runs_) / file.filename();
      std::error_code error;
      const bool is_code = file.extension() == ".code";
      const bool is_points = file.extension() == ".points";
      const bool is_text = file.extension() == ".yaml";
      if (!(is_text || is_code || is_points) || fs::exists(here, error)) continue;
      std::string text;
      try {
        text = base::read_file(file, kMostSweepText);
      } catch (const base::Error&) {
        continue;  // Reported when that folder was read, as is a mismatch.
      }
      const std::string digest = base::sha256(text);
      const auto file_of = is_code ? protocol::code_record_file : protocol::sweep_text_file;
      if (!is_points && file_of(runs_, digest) != here) continue;
      fs::create_directories(here.parent_path(), error);
      base::write_file_atomically(here, text);
      if (!is_text) continue;  // the database has only the digest of code
      results::Batch batch = store_.begin();
      batch.record_sweep_text(digest, text);
      batch.commit();
    }
  }

  void take_sweep(const std::string& name) {
    orchestrator::SweepFile there =
        orchestrator::read_sweep_file(protocol::sweep_file(other_runs_, name));
    if (const auto here = store_.read().sweep(name)) {
      const auto key = [](const auto& member) {
        return std::pair(member.trial_id, member.variant);
      };
      std::set<std::pair<std::string, std::string>> members;
      for (const auto& member : here->members) members.insert(key(member));
      std::set<std::string> missing;
      for (const auto& member : there.sweep.members) {
        if (!members.contains(key(member))) missing.insert(member.trial_id);
      }
      if (missing.empty()) return;
      conflict(
          "",
          fmt::format("sweep {}: {} of its trials there {} not in it here ({} for one); the sweep "
                      "keeps its members here, and the other trials' results are merged without "
                      "it; petlab run or petlab plan with the other sweep file changes its members",
                      name, missing.size(), missing.size() == 1 ? "is" : "are", *missing.begin()));
      return;
    }
    orchestrator::record_sweep(store_, runs_, there.sweep, there.trials, there.time);
    ++merged_.sweeps;
  }

  /// Numbers of the attempts in the runs folder, by identity.
  std::map<std::string, std::int64_t> identities_here(const std::string& trial_id) const {
    std::map<std::string, std::int64_t> found;
    for (const fs::path& entry : base::entries_of(protocol::trial_folder(runs_, trial_id))) {
      const auto number = protocol::attempt_number(entry.filename().string());
      if (!number) continue;
      const std::string identity = attempt_identity(TrialDirectory(runs_, trial_id, *number));
      if (!identity.empty()) found.emplace(identity, *number);
    }
    return found;
  }

  /// Plans one trial's merge, and stages its files if it has any to copy.
  void look_at(const TrialFacts& here, const TrialFacts& there) {
    const std::string& id = there.trial_id;
    if (const AttemptFacts* open = open_one(there)) {
      leave(id, fmt::format("attempt {} runs there {}, according to its files: merge again when it "
                            "has ended (petlab run there closes dead attempts)",
                            open->attempt.number, orchestrator::where_it_runs(*open)));
      return;
    }
    std::map<std::string, std::int64_t> known = identities_here(id);
    std::set<std::int64_t> lost;  // in the database, but without a folder
    for (const AttemptFacts& attempt : here.attempts) {
      const std::string identity = attempt_identity(attempt.begun);
      const std::int64_t number = attempt.attempt.number;
      std::error_code error;
      if (identity.empty() || fs::exists(TrialDirectory(runs_, id, number).folder(), error))
        continue;
      if (known.emplace(identity, number).second) lost.insert(number);
    }
    std::map<std::int64_t, std::int64_t> numbers;
    std::set<std::int64_t> shared;
    std::vector<std::int64_t> fresh;
    std::int64_t highest =
        std::max(orchestrator::highest_attempt_directory(runs_, id), ours_->highest_attempt(id));
    for (const AttemptFacts& attempt : there.attempts) {
      const std::int64_t number = attempt.attempt.number;
      const std::string identity = attempt_identity(TrialDirectory(other_runs_, id, number));
      if (identity.empty()) {
        leave(id, fmt::format("attempt {} does not record which run started it (in attempt.jsonl), "
                              "so petlab cannot decide whether it is already here",
                              number));
        return;
      }
      if (const auto found = known.find(identity); found != known.end()) {
        numbers[number] = found->second;
        shared.insert(found->second);
      } else {
        fresh.push_back(number);
        numbers[number] = highest = std::max(highest + 1, number);
      }
    }
    const bool own_attempts = std::any_of(
        here.attempts.begin(), here.attempts.end(),
        [&](const AttemptFacts& attempt) { return !shared.contains(attempt.attempt.number); });
    if (!same_where_shared(here, there, numbers, fresh, lost)) return;
    if (here.result_attempt && there.result_attempt) {
      compare_results(here, there, numbers, fresh);
    }
    const bool wanted = !here.result_attempt && (there.result_attempt || !own_attempts);
    if (!wanted) fresh.clear();
    for (const auto& [number, number_here] : numbers) {
      if (lost.contains(number_here)) fresh.push_back(number);
    }
    std::sort(fresh.begin(), fresh.end());
    std::vector<Decision> decisions = decisions_to_take(
        {protocol::read_decisions(other_runs_, id), numbers, !fresh.empty(), own_attempts},
        protocol::read_decisions(runs_, id));
    if (fresh.empty() && decisions.empty()) return;
    if (const AttemptFacts* open = open_one(here)) {
      leave(id, fmt::format("attempt {} runs here {}: merge again when it has ended",
                            open->attempt.number, orchestrator::where_it_runs(*open)));
      return;
    }
    stage(here, there, numbers, fresh, std::move(decisions));
  }

  AttemptCopy copy_of(const std::string& trial_id, std::int64_t number,
                      const std::map<std::int64_t, std::int64_t>& numbers, bool everything) const {
    return {TrialDirectory(other_runs_, trial_id, number),
            options_.source,
            numbers.at(number),
            numbers,
            everything,
            ""};
  }

  /// Checks that attempts on both sides are the same, and copies their missing files.
  bool same_where_shared(const TrialFacts& here, const TrialFacts& there,
                         const std::map<std::int64_t, std::int64_t>& numbers,
                         const std::vector<std::int64_t>& fresh,
                         const std::set<std::int64_t>& lost) {
    const std::string& id = there.trial_id;
    if (fresh.size() == there.attempts.size()) return true;
    const auto values_here = ours_->attempts(id);
    const auto values_there = theirs_->attempts(id);
    const auto values_of = [&](const auto& all, std::int64_t number) {
      const auto found = all.find({id, number});
      return found == all.end() ? results::ValuesDigest() : found->second;
    };
    for (const AttemptFacts& attempt : there.attempts) {
      const std::int64_t number = attempt.attempt.number;
      const std::int64_t number_here = numbers.at(number);
      const AttemptFacts* ours = attempt_of(here, number_here);
      if (ours == nullptr) continue;  // yet to be copied
      if (ours->outcome != attempt.outcome ||
          values_of(values_here, number_here) != values_of(values_there, number)) {
        conflict(id, fmt::format("attempt {} there is attempt {} here, where it is {} with "
                                 "different values (there: {}): the one here is kept; one of the "
                                 "two runs folders was changed (see petlab db check)",
                                 number, number_here, to_string(ours->outcome),
                                 to_string(attempt.outcome)));
        return false;
      }
      if (lost.contains(number_here)) continue;  // its folder is yet to be copied
      if (!bring_files(here, attempt, copy_of(id, number, numbers, false))) return false;
    }
    return true;
  }

  bool bring_files(const TrialFacts& here, const AttemptFacts& there, AttemptCopy copy) {
    const std::string& id = here.trial_id;
    const TrialDirectory target(runs_, id, copy.number);
    if (here.result_attempt == copy.number) {
      const auto artifact = artifact_names_.find(id);
      if (artifact != artifact_names_.end()) copy.artifact = artifact->second;
    }
    try {
      const fs::path from = copy.from.folder() / copy.artifact;
      std::error_code error;
      if (!copy.artifact.empty() && fs::is_regular_file(from, error) &&
          fs::is_regular_file(target.folder() / copy.artifact, error) &&
          !have_same_bytes(target.folder() / copy.artifact, from)) {
        conflict(id, fmt::format("{} of attempt {} is {} here, {} there (attempt {}): the one here "
                                 "is kept; petlab db check shows which is damaged",
                                 copy.artifact, copy.number,
                                 digest_of_file(target.folder() / copy.artifact).digest,
                                 digest_of_file(from).digest, there.attempt.number));
        return false;
      }
      merged_.files += std::ssize(complete_attempt(copy, target.folder(), staging_));
    } catch (const SourceError& error) {
      leave(id, error.what());
      return false;
    }
    return true;
  }

  void compare_results(const TrialFacts& here, const TrialFacts& there,
                       const std::map<std::int64_t, std::int64_t>& numbers,
                       const std::vector<std::int64_t>& fresh) {
    const std::string& id = there.trial_id;
    const std::int64_t number = *there.result_attempt;
    if (std::find(fresh.begin(), fresh.end(), number) == fresh.end()) {
      if (numbers.at(number) == *here.result_attempt) ++merged_.same;
      return;
    }
    const AttemptFacts* made_here = attempt_of(here, *here.result_attempt);
    const AttemptFacts* made_there = attempt_of(there, number);
    std::vector<std::string> differences;
    if (std::string text = difference_of_values(ours_->counted(id), theirs_->counted(id));
        !text.empty()) {
      differences.push_back(std::move(text));
    }
    for (std::string& text :
         differences_of_making(*made_here, store_.read().provenance(made_here->attempt),
                               *made_there, other_.read().provenance(made_there->attempt))) {
      differences.push_back(std::move(text));
    }
    if (differences.empty()) {
      ++merged_.same;
      return;
    }
    conflict(id,
             fmt::format("has a result here (attempt {}) and there (attempt {}): {}; the one here "
                         "is kept (to use the other: petlab discard {} --why …, then merge again)",
                         *here.result_attempt, number, fmt::join(differences, "; "), id));
  }

  void stage(const TrialFacts& here, const TrialFacts& there,
             const std::map<std::int64_t, std::int64_t>& numbers,
             const std::vector<std::int64_t>& fresh, std::vector<Decision> decisions) {
    StagedTrial trial;
    trial.trial_id = there.trial_id;
    trial.changes = here.changes;
    trial.row = other_.read().trial(there.trial_id).value();
    trial.decisions = std::move(decisions);
    try {
      for (const std::int64_t number : fresh) {
        AttemptCopy copy = copy_of(there.trial_id, number, numbers, !there.result_attempt);
        const fs::path folder =
            TrialDirectory(staging_ / "trials", there.trial_id, copy.number).folder();
        trial.bytes += copy_attempt(copy, folder);
        trial.attempts.push_back({std::move(copy), folder});
      }
    } catch (const SourceError& error) {
      leave(there.trial_id, error.what());
      return;
    }
    staged_.push_back(std::move(trial));
  }

  /// Moves staged trials into the runs folder and stores them in one transaction, so that runs see
  /// all of a trial or nothing.
  void place() {
    const std::vector<StagedTrial> staged = std::exchange(staged_, {});
    if (staged.empty()) return;
    MergeResult done;
    results::Batch batch = store_.begin();
    for (const StagedTrial& trial : staged) {
      const TrialFacts now =
          store_.read().trial_facts(std::vector<std::string>{trial.trial_id}).front();
      if (now.changes != trial.changes) {
        leave(trial.trial_id, "it changed here during the merge: merge again");
        continue;
      }
      place_trial(batch, trial);
      done.trials += trial.attempts.empty() ? 0 : 1;
      done.attempts += std::ssize(trial.attempts);
      done.decisions += std::ssize(trial.decisions);
      done.bytes += trial.bytes;
    }
    batch.commit();
    merged_.trials += done.trials;
    merged_.attempts += done.attempts;
    merged_.decisions += done.decisions;
    merged_.bytes += done.bytes;
  }

  void place_trial(results::Batch& batch, const StagedTrial& trial) {
    const fs::path folder = protocol::trial_folder(runs_, trial.trial_id);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
    if (!store_.read().trial(trial.trial_id)) batch.record_trial(trial.row);
    // Decisions come first, so that an attempt never counts against them.
    for (const Decision& decision : trial.decisions) {
      protocol::append_decision(runs_, trial.trial_id, decision);
    }
    for (const StagedTrial::Attempt& attempt : trial.attempts) {
      const TrialDirectory directory(runs_, trial.trial_id, attempt.copy.number);
      // rename() replaces only empty folders, and attempt folders never are empty.
      if (std::rename(attempt.folder.c_str(), directory.folder().c_str()) != 0) {
        throw Error(fmt::format("{}: cannot be created: {}", directory.folder().string(),
                                std::strerror(errno)));
      }
    }
    base::sync_folder(folder);
    base::sync_folder(runs_);
    for (const StagedTrial::Attempt& attempt : trial.attempts) {
      const TrialDirectory directory(runs_, trial.trial_id, attempt.copy.number);
      const results::AttemptRef stored =
          orchestrator::store_attempt(batch, directory, protocol::read_attempt_log(directory));
      ingest_.expect(batch, stored);
      for (bool more = true; more;) {
        const orchestrator::NewEvents events = ingest_.look(stored);
        more = events.update().more;
        ingest_.store(batch, events);
      }
      ingest_.forget(stored);
    }
    orchestrator::store_decisions(batch, trial.trial_id, trial.decisions);
  }

  void look_for_what_the_folder_lacks() {
    if (options_.other_database.empty()) return;
    const results::Reader reader(options_.other_database);
    const results::ContentsReader contents(options_.other_database);
    const std::vector<std::string> ids = contents.trial_ids();
    for (std::size_t at = 0; at < ids.size(); at += kTrialsAtOnce) {
      const auto part = std::span(ids).subspan(at, std::min(kTrialsAtOnce, ids.size() - at));
      const std::vector<TrialFacts> recorded = reader.trial_facts(part);
      const std::vector<TrialFacts> there = other_.read().trial_facts(part);
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (!recorded[i].result_attempt ||
            attempt_of(there[i], *recorded[i].result_attempt) != nullptr) {
          continue;
        }
        leave(part[i], fmt::format("its result is in the other database, but attempt {} is not in "
                                   "the runs folder: only attempts with files are merged",
                                   *recorded[i].result_attempt));
      }
    }
  }

  results::Store& store_;
  const fs::path& runs_;
  const fs::path& staging_;
  const fs::path& other_runs_;
  const TakeOverOptions& options_;
  orchestrator::Ingest ingest_;
  results::Store other_;  // database of the other runs folder
  const results::ContentsReader* ours_ = nullptr;
  const results::ContentsReader* theirs_ = nullptr;
  std::vector<StagedTrial> staged_;
  std::map<std::string, std::string> artifact_names_;  // of local results, by trial id
  MergeResult merged_;
};

}  // namespace

MergeResult merge_runs(results::Store& store, const Incoming& incoming, const fs::path& other_runs,
                       const TakeOverOptions& options) {
  std::error_code error;
  if (fs::equivalent(incoming.runs(), other_runs, error)) {
    throw Error(
        fmt::format("{}: this is the runs folder of {} itself; read it with petlab db import",
                    other_runs.string(), store.file().string()));
  }
  return TakeOver(store, incoming, other_runs, options).run();
}

}  // namespace petlab::exchange
