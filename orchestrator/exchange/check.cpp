#include "orchestrator/exchange/check.h"

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
#include "orchestrator/exchange/attempt_copy.h"
#include "orchestrator/exchange/check_files.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/recovery/evidence.h"
#include "results/contents.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "results/remarks.h"

namespace petlab::orchestrator {
namespace {

namespace fs = std::filesystem;
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
        said_(places.database),
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
    for (const results::Reader* one : {&said_, &written}) {
      for (const std::string& name : one->sweep_names()) names.insert(name);
    }
    for (const std::string& name : names) {
      const auto said = said_.sweep(name);
      const auto there = written.sweep(name);
      if (said && !there) {
        find({"sweep_without_file", "", 0, protocol::sweep_file(places_.runs, name),
              fmt::format("sweep {} is in the database but has no file", name),
              "petlab run with its sweep file rewrites it"});
      } else if (!said || said->members != there->members) {
        find({"sweep_not_in_database", "", 0, protocol::sweep_file(places_.runs, name),
              said ? fmt::format("sweep {} has {} members in the database, {} in its file", name,
                                 said->members.size(), there->members.size())
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
    values_said_ = contents_.attempts();
    values_there_ = written.attempts();
    for (const auto& [attempt, values] : values_said_) report_.values += values.values;
    std::set<std::string> all;
    for (const results::ContentsReader* one : {&contents_, &written}) {
      for (std::string& id : one->trial_ids()) all.insert(std::move(id));
    }
    const std::vector<std::string> ids(all.begin(), all.end());
    report_.trials = std::ssize(ids);
    for (std::size_t at = 0; at < ids.size(); at += kCheckedAtOnce) {
      const auto part = std::span(ids).subspan(at, std::min(kCheckedAtOnce, ids.size() - at));
      const std::vector<TrialFacts> said = said_.trial_facts(part);
      const std::vector<TrialFacts> there = folder_.read().trial_facts(part);
      for (std::size_t i = 0; i < part.size(); ++i) check_trial(said[i], there[i]);
    }
  }

  void check_trial(const TrialFacts& said, const TrialFacts& there) {
    const std::size_t before = report_.findings.size();
    std::map<std::int64_t, std::pair<const AttemptFacts*, const AttemptFacts*>> attempts;
    for (const AttemptFacts& one : said.attempts) attempts[one.attempt.number].first = &one;
    for (const AttemptFacts& one : there.attempts) attempts[one.attempt.number].second = &one;
    bool incomplete = false;  // it runs, or was not understood, which was named
    for (const auto& [number, both] : attempts) {
      ++report_.attempts;
      incomplete = incomplete || both.second == nullptr ||
                   (both.first != nullptr && both.first->outcome == Outcome::open);
      check_attempt(there.trial_id, number, both.first, both.second);
    }
    if (report_.findings.size() > before || incomplete) return;
    const std::string text = difference_of_decisions(said, there);
    if (text.empty()) return;
    find({"decisions", said.trial_id, 0, protocol::decisions_file(places_.runs, said.trial_id),
          text, ingest() + "; if that does not help: " + anew()});
  }

  std::string difference_of_decisions(const TrialFacts& said, const TrialFacts& there) const {
    const auto number = [](const std::optional<std::int64_t>& attempt) {
      return attempt ? fmt::format("attempt {}", *attempt) : std::string("none");
    };
    std::vector<std::string> found;
    if (said.result_attempt != there.result_attempt) {
      found.push_back(fmt::format("the result comes from {} in the database, from {} in the files",
                                  number(said.result_attempt), number(there.result_attempt)));
    }
    const auto compare = [&](const char* what, std::int64_t a, std::int64_t b) {
      if (a != b) {
        found.push_back(fmt::format("{} is {} in the database, {} in the file", what, a, b));
      }
    };
    compare("cancelled", said.cancelled, there.cancelled);
    compare("the last attempt before a retry", said.retried_after, there.retried_after);
    compare("the last attempt to rerun", said.renewed_after, there.renewed_after);
    compare("the last discarded attempt", said.discarded_after, there.discarded_after);
    compare("hidden", results::care_of(said_, said.trial_id).hidden.has_value(),
            results::care_of(folder_.read(), said.trial_id).hidden.has_value());
    if (remarks_differ({said.trial_id, ""})) found.emplace_back("tags or notes differ");
    return fmt::format("{}", fmt::join(found, "; "));
  }

  bool remarks_differ(const results::RemarkSubject& subject) const {
    return results::remarks_of(said_, subject).all !=
           results::remarks_of(folder_.read(), subject).all;
  }

  void check_attempt(const std::string& id, std::int64_t number, const AttemptFacts* said,
                     const AttemptFacts* there) {
    const fs::path folder = protocol::TrialDirectory(places_.runs, id, number).folder();
    if (said == nullptr) {
      find({"not_in_database", id, number, folder, "it is not in the database", ingest()});
    } else if (said->outcome == Outcome::open) {
      check_open(id, *said, there, folder);
    } else if (there == nullptr) {
      std::error_code error;
      // What is there and not understood was named already.
      if (fs::is_directory(folder, error)) return;
      find({"no_folder", id, number, folder,
            fmt::format("it is {} in the database, but its folder is missing",
                        to_string(said->outcome)),
            fmt::format("restore it, or import it from a copy: petlab db import COPY {}",
                        places_.database_word)});
    } else {
      check_closed(id, *said, *there, folder);
    }
  }

  void check_open(const std::string& id, const AttemptFacts& said, const AttemptFacts* there,
                  const fs::path& folder) {
    if (there != nullptr && there->outcome != Outcome::open) {
      find({"behind", id, said.attempt.number, folder,
            fmt::format("it is {} in its files, which the database has not read yet",
                        to_string(there->outcome)),
            ingest()});
      return;
    }
    const auto alive = liveness(said.begun, locks_folder(places_.runs), this_host());
    if (alive != Liveness::dead) return;
    find({"dead_attempt", id, said.attempt.number, folder,
          "it is open, but the petlab run that started it is dead",
          "petlab run of its sweep closes it and retries"});
  }

  std::string difference_of_examples(const results::Examples& said,
                                     const results::Examples& there) {
    if (said == there) return {};
    // An earlier petlab read the events and kept none of them.
    if (said.empty()) {
      ++attempts_without_examples_;
      return {};
    }
    return "its example counts differ between the database and its events.jsonl";
  }

  void check_closed(const std::string& id, const AttemptFacts& said, const AttemptFacts& there,
                    const fs::path& folder) {
    const auto values_of = [&](const auto& all) {
      const auto found = all.find({id, said.attempt.number});
      return found == all.end() ? results::ValuesDigest() : found->second;
    };
    const results::ValuesDigest a = values_of(values_said_);
    const results::ValuesDigest b = values_of(values_there_);
    std::string text;
    if (said.outcome != there.outcome) {
      text = fmt::format("it is {} in the database, {} in its files", to_string(said.outcome),
                         to_string(there.outcome));
    } else if (a.values != b.values) {
      text = fmt::format("it has {} values in the database, {} in its events.jsonl", a.values,
                         b.values);
    } else if (a != b) {
      text = "its values in the database differ from those in its events.jsonl";
    } else if (said.numerics != there.numerics || said.backbone_digest != there.backbone_digest ||
               said.data_digests != there.data_digests || said.begun != there.begun) {
      text =
          "digests, numerics or the run that started it differ between the database and its files";
    } else {
      text = difference_of_examples(results::examples_of(said_, said.attempt),
                                    results::examples_of(folder_.read(), there.attempt));
    }
    if (text.empty()) return;
    find({"other_content", id, said.attempt.number, folder, text,
          fmt::format(
              "if the files are right: {}; if the database is right: restore the files from a copy",
              anew())});
  }

  const CheckedPlaces& places_;
  const base::TemporaryFolder scratch_{"petlab-check"};
  const results::Reader said_;
  const results::ContentsReader contents_;
  results::Store folder_;  // what the runs folder says
  results::ContentsReader::ByAttempt values_said_;
  results::ContentsReader::ByAttempt values_there_;
  std::int64_t attempts_without_examples_ = 0;
  CheckReport report_;
};

}  // namespace

CheckReport check(const CheckedPlaces& places) { return Check(places).run(); }

}  // namespace petlab::orchestrator
