#include "exchange/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "exchange/attempt_copy.h"
#include "exchange/check_files.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/recovery/evidence.h"
#include "results/contents.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "results/remarks.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;
using orchestrator::Configurations;
using orchestrator::Liveness;
using orchestrator::locks_folder;
using orchestrator::this_host;
using results::AttemptFacts;
using results::Outcome;
using results::TrialFacts;

constexpr std::size_t kCheckedAtOnce = 256;

results::OpenOptions for_a_moment() {
  results::OpenOptions options;
  options.synced = false;
  return options;
}

class Check {
 public:
  explicit Check(const CheckedPlaces& places)
      : places_(places),
        database_(places.database),
        contents_(places.database),
        folder_(scratch_.path() / "runs.db", for_a_moment()) {}

  CheckReport run() {
    for (const std::string& text : contents_.damage()) {
      find({"damaged_database", "", 0, places_.database, text, anew()});
    }
    std::error_code error;
    if (!fs::is_directory(places_.runs, error)) {
      find({"no_runs_folder", "", 0, places_.runs,
            "the runs folder is missing: artifacts, logs and checkpoints were in it",
            fmt::format("restore it, or name its place: petlab db import {} --runs FOLDER",
                        places_.database_word)});
      return std::move(report_);
    }
    for (const std::string& text :
         ingest_runs(folder_, places_.runs, {}, Configurations::all).left_out) {
      find({"unreadable_file",
            "",
            0,
            {},
            text,
            "restore the file from a copy of the runs folder (petlab db import copies what another "
            "machine has)"});
    }
    check_sweeps();
    check_trials();
    if (attempts_without_examples_ > 0) {
      report_.notes.push_back(
          fmt::format("attempts without example counts in the database, because an earlier petlab "
                      "read their events: {}; to add them: {}",
                      attempts_without_examples_, anew()));
    }
    FileCheck files(places_, report_);
    files.check_artifacts(contents_.artifacts());
    files.check_notes();
    files.look_for_leftovers();
    return std::move(report_);
  }

 private:
  void find(Finding finding) { report_.findings.push_back(std::move(finding)); }
  std::string ingest() const {
    return fmt::format("petlab db import {} {}", places_.database_word, places_.runs_word);
  }
  std::string anew() const {
    return fmt::format("move {}, then run petlab db rebuild {} {}", places_.database.string(),
                       places_.database_word, places_.runs_word);
  }

  void check_sweeps() {
    const results::Reader& written = folder_.read();
    std::set<std::string> names;
    for (const results::Reader* one : {&database_, &written}) {
      for (const std::string& name : one->sweep_names()) names.insert(name);
    }
    for (const std::string& name : names) {
      const auto in_database = database_.sweep(name);
      const auto in_files = written.sweep(name);
      if (in_database && !in_files) {
        find({"sweep_without_file", "", 0, protocol::sweep_file(places_.runs, name),
              fmt::format("sweep {} is in the database but has no file", name),
              "petlab run with its sweep file rewrites it"});
      } else if (!in_database || in_database->members != in_files->members) {
        find({"sweep_not_in_database", "", 0, protocol::sweep_file(places_.runs, name),
              in_database ? fmt::format("sweep {} has {} members in the database, {} in its file",
                                        name, in_database->members.size(), in_files->members.size())
                          : fmt::format("sweep {} is not in the database", name),
              ingest()});
      } else if (remarks_differ({"", name})) {
        find({"decisions", "", 0, protocol::sweep_remarks_file(places_.runs, name),
              fmt::format("tags or notes of sweep {} differ", name), ingest()});
      }
    }
  }

  void check_trials() {
    const results::ContentsReader written(folder_.file());
    database_values_ = contents_.attempts();
    files_values_ = written.attempts();
    for (const auto& [attempt, values] : database_values_) report_.values += values.values;
    std::set<std::string> all;
    for (const results::ContentsReader* one : {&contents_, &written}) {
      for (std::string& id : one->trial_ids()) all.insert(std::move(id));
    }
    const std::vector<std::string> ids(all.begin(), all.end());
    report_.trials = std::ssize(ids);
    for (std::size_t at = 0; at < ids.size(); at += kCheckedAtOnce) {
      const auto part = std::span(ids).subspan(at, std::min(kCheckedAtOnce, ids.size() - at));
      const std::vector<TrialFacts> in_database = database_.trial_facts(part);
      const std::vector<TrialFacts> in_files = folder_.read().trial_facts(part);
      for (std::size_t i = 0; i < part.size(); ++i) check_trial(in_database[i], in_files[i]);
    }
  }

  void check_trial(const TrialFacts& in_database, const TrialFacts& in_files) {
    const std::size_t before = report_.findings.size();
    std::map<std::int64_t, std::pair<const AttemptFacts*, const AttemptFacts*>> attempts;
    for (const AttemptFacts& one : in_database.attempts) attempts[one.attempt.number].first = &one;
    for (const AttemptFacts& one : in_files.attempts) attempts[one.attempt.number].second = &one;
    bool incomplete = false;  // it runs, or is unreadable, which was reported
    for (const auto& [number, both] : attempts) {
      ++report_.attempts;
      incomplete = incomplete || both.second == nullptr ||
                   (both.first != nullptr && both.first->outcome == Outcome::open);
      check_attempt(in_files.trial_id, number, both.first, both.second);
    }
    if (report_.findings.size() > before || incomplete) return;
    const std::string text = difference_of_decisions(in_database, in_files);
    if (text.empty()) return;
    find({"decisions", in_database.trial_id, 0,
          protocol::decisions_file(places_.runs, in_database.trial_id), text,
          ingest() + "; if that does not help: " + anew()});
  }

  std::string difference_of_decisions(const TrialFacts& in_database,
                                      const TrialFacts& in_files) const {
    const auto number = [](const std::optional<std::int64_t>& attempt) {
      return attempt ? fmt::format("attempt {}", *attempt) : std::string("none");
    };
    std::vector<std::string> found;
    if (in_database.result_attempt != in_files.result_attempt) {
      found.push_back(fmt::format("the result comes from {} in the database, from {} in the files",
                                  number(in_database.result_attempt),
                                  number(in_files.result_attempt)));
    }
    const auto compare = [&](const char* what, std::int64_t a, std::int64_t b) {
      if (a != b) {
        found.push_back(fmt::format("{} is {} in the database, {} in the file", what, a, b));
      }
    };
    compare("cancelled", in_database.cancelled, in_files.cancelled);
    if (in_database.stopped_early != in_files.stopped_early) {
      found.emplace_back("the reason for stopping it early differs");
    }
    compare("the last attempt before a retry", in_database.retried_after, in_files.retried_after);
    compare("the last attempt to rerun", in_database.renewed_after, in_files.renewed_after);
    compare("the last discarded attempt", in_database.discarded_after, in_files.discarded_after);
    compare("hidden", results::result_decisions(database_, in_database.trial_id).hidden.has_value(),
            results::result_decisions(folder_.read(), in_database.trial_id).hidden.has_value());
    if (remarks_differ({in_database.trial_id, ""})) found.emplace_back("tags or notes differ");
    return fmt::format("{}", fmt::join(found, "; "));
  }

  bool remarks_differ(const results::RemarkSubject& subject) const {
    return results::remarks_of(database_, subject).all !=
           results::remarks_of(folder_.read(), subject).all;
  }

  void check_attempt(const std::string& id, std::int64_t number, const AttemptFacts* in_database,
                     const AttemptFacts* in_files) {
    const fs::path folder = protocol::TrialDirectory(places_.runs, id, number).folder();
    if (in_database == nullptr) {
      find({"not_in_database", id, number, folder, "it is not in the database", ingest()});
    } else if (in_database->outcome == Outcome::open) {
      check_open(id, *in_database, in_files, folder);
    } else if (in_files == nullptr) {
      std::error_code error;
      // Unreadable folders were reported before.
      if (fs::is_directory(folder, error)) return;
      find({"no_folder", id, number, folder,
            fmt::format("it is {} in the database, but its folder is missing",
                        to_string(in_database->outcome)),
            fmt::format("restore it, or import it from a copy: petlab db import COPY {}",
                        places_.database_word)});
    } else {
      check_closed(id, *in_database, *in_files, folder);
    }
  }

  void check_open(const std::string& id, const AttemptFacts& in_database,
                  const AttemptFacts* in_files, const fs::path& folder) {
    if (in_files != nullptr && in_files->outcome != Outcome::open) {
      find({"behind", id, in_database.attempt.number, folder,
            fmt::format("it is {} in its files, which the database has not read yet",
                        to_string(in_files->outcome)),
            ingest()});
      return;
    }
    const auto alive = liveness(in_database.begun, locks_folder(places_.runs), this_host());
    if (alive != Liveness::dead) return;
    find({"dead_attempt", id, in_database.attempt.number, folder,
          "it is open, but the petlab run that started it is dead",
          "petlab run of its sweep closes it and retries"});
  }

  std::string difference_of_examples(const results::Examples& in_database,
                                     const results::Examples& in_files) {
    if (in_database == in_files) return {};
    // An earlier petlab read these events without storing examples.
    if (in_database.empty()) {
      ++attempts_without_examples_;
      return {};
    }
    return "its example counts differ between the database and its events.jsonl";
  }

  void check_closed(const std::string& id, const AttemptFacts& in_database,
                    const AttemptFacts& in_files, const fs::path& folder) {
    const auto values_of = [&](const auto& all) {
      const auto found = all.find({id, in_database.attempt.number});
      return found == all.end() ? results::ValuesDigest() : found->second;
    };
    const results::ValuesDigest a = values_of(database_values_);
    const results::ValuesDigest b = values_of(files_values_);
    std::string text;
    if (in_database.outcome != in_files.outcome) {
      text = fmt::format("it is {} in the database, {} in its files",
                         to_string(in_database.outcome), to_string(in_files.outcome));
    } else if (a.values != b.values) {
      text = fmt::format("it has {} values in the database, {} in its events.jsonl", a.values,
                         b.values);
    } else if (a != b) {
      text = "its values in the database differ from those in its events.jsonl";
    } else if (in_database.numerics != in_files.numerics ||
               in_database.backbone_digest != in_files.backbone_digest ||
               in_database.data_digests != in_files.data_digests ||
               in_database.begun != in_files.begun) {
      text =
          "digests, numerics or the run that started it differ between the database and its files";
    } else {
      text = difference_of_examples(results::examples_of(database_, in_database.attempt),
                                    results::examples_of(folder_.read(), in_files.attempt));
    }
    if (text.empty()) return;
    find({"other_content", id, in_database.attempt.number, folder, text,
          fmt::format(
              "if the files are right: {}; if the database is right: restore the files from a copy",
              anew())});
  }

  const CheckedPlaces& places_;
  const base::TemporaryFolder scratch_{"petlab-check"};
  const results::Reader database_;
  const results::ContentsReader contents_;
  results::Store folder_;  // database rebuilt from the runs folder
  results::ContentsReader::ByAttempt database_values_;
  results::ContentsReader::ByAttempt files_values_;
  std::int64_t attempts_without_examples_ = 0;
  CheckReport report_;
};

}  // namespace

CheckReport check(const CheckedPlaces& places) { return Check(places).run(); }

}  // namespace petlab::exchange
