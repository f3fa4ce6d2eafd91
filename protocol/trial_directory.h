#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::protocol {

/// Every name in the directory of an attempt (docs/reference/worker-protocol.md), and nothing else:
/// the one place that makes and parses `runs/<trial id>/<attempt>/…`. Does no I/O.
class TrialDirectory {
 public:
  TrialDirectory(const std::filesystem::path& runs, const std::string& trial_id,
                 std::int64_t attempt);
  /// From the path of an attempt's directory itself; throws std::invalid_argument where its last
  /// component is no attempt number.
  explicit TrialDirectory(const std::filesystem::path& attempt_folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& trial_id() const { return trial_id_; }
  std::int64_t attempt() const { return attempt_; }
  std::filesystem::path trial_json() const { return folder_ / "trial.json"; }
  std::filesystem::path events() const { return folder_ / "events.jsonl"; }
  std::filesystem::path log() const { return folder_ / "log.txt"; }
  std::filesystem::path checkpoint() const { return folder_ / "checkpoint"; }
  /// The checkpoint that the attempt goes on from, as petlab keeps it for the attempt.
  std::filesystem::path resume() const { return folder_ / "resume"; }
  std::filesystem::path artifact() const { return folder_ / "artifact.petl"; }
  /// The folder of a trial's test predictions: classes and scores, and with
  /// evaluation.keep_predictions texts. Each task has two files, which `petlab score` compares. A
  /// task's name is escaped as in sweep_file().
  std::filesystem::path predictions() const { return folder_ / "predictions"; }
  std::filesystem::path gold_file(const std::string& task, bool texts) const;
  std::filesystem::path predicted_file(const std::string& task, bool texts) const;
  /// What petlab notes of the attempt: begun, launched, ended.
  std::filesystem::path attempt_log() const { return folder_ / "attempt.jsonl"; }
  /// What the Slurm job that runs the attempt notes: began, ended.
  std::filesystem::path job_log() const { return folder_ / "job.jsonl"; }

 private:
  std::filesystem::path folder_;
  std::string trial_id_;
  std::int64_t attempt_ = 0;
};

/// What a worker that reads directories prints before it begins one, so that what it prints of this
/// one can be told from what it printed of the one before (docs/reference/worker-protocol.md):
/// kAnnouncement, the directory as it was read, a newline.
constexpr char kAnnouncement = '\x1e';
std::string announcement(const std::string& attempt_folder);

/// runs/<trial id>: the attempts of a trial.
std::filesystem::path trial_folder(const std::filesystem::path& runs, const std::string& trial_id);
/// runs/<trial id>/decisions.jsonl: what the user decided on the trial (cancel, retry).
std::filesystem::path decisions_file(const std::filesystem::path& runs,
                                     const std::string& trial_id);
/// runs/<trial id>/remarks.jsonl: tags and notes of the user's.
std::filesystem::path remarks_file(const std::filesystem::path& runs, const std::string& trial_id);
/// runs/sweeps: what petlab notes of each sweep, one file each.
std::filesystem::path sweeps_folder(const std::filesystem::path& runs);
/// runs/sweeps/<name>.jsonl; in the name all but ASCII letters, digits, '.', '_' and '-' is written
/// as %XX, and so is a dot at its beginning.
std::filesystem::path sweep_file(const std::filesystem::path& runs, const std::string& name);
/// runs/sweeps/<name>.remarks: likewise on a sweep, its name written as there.
std::filesystem::path sweep_remarks_file(const std::filesystem::path& runs,
                                         const std::string& name);
/// runs/sweeps/<name>.delivered: the events of a sweep that were delivered, its name written as
/// there.
std::filesystem::path delivered_events_file(const std::filesystem::path& runs,
                                            const std::string& name);
/// runs/sweeps/<digest>.yaml, its colon as '-': the text of a sweep file that was run.
std::filesystem::path sweep_text_file(const std::filesystem::path& runs, const std::string& digest);
/// The number that a folder of a trial has as its name ("12"); std::nullopt for any other name.
std::optional<std::int64_t> attempt_number(const std::string& folder_name);

/// "resume/step-120.ckpt": where an attempt has the checkpoint of another, relative to its own
/// directory.
std::string kept_checkpoint(const std::filesystem::path& checkpoint);

/// Where a resumed attempt goes on (docs/reference/worker-protocol.md, `resume`).
struct Resume {
  std::int64_t attempt = 0;  // the parent attempt
  std::int64_t step = 0;
  std::int64_t seq = 0;    // seq of the parent's checkpoint event
  std::string checkpoint;  // relative to the new attempt's directory
  bool operator==(const Resume&) const = default;
};

/// The content of `trial.json`.
struct TrialFile {
  std::string trial_id;
  std::int64_t attempt = 1;
  sweeps::TrialConfig config;
  /// The declarations of config.tasks, in that order, so that a worker needs no catalog.
  std::vector<sweeps::TaskDeclaration> tasks;
  std::filesystem::path backbone_folder;
  std::vector<std::filesystem::path> data_folders;
  std::string backbone_digest;                      // "sha256:…", empty where not known
  std::map<std::string, std::string> data_digests;  // by task
  std::int64_t threads = 1;
  std::string device = "cpu";          // or "cuda", "rocm"
  std::string device_uuid;             // of the GPU; empty: none
  std::int64_t device_memory_mib = 0;  // how much of it is reserved for the worker; 0: not known
  std::optional<Resume> resume;
};

/// Writes `trial.json` under a temporary name, syncs and renames it. Throws base::Error.
void write_trial_file(const std::filesystem::path& file, const TrialFile& content);

/// Reads it. Throws base::Error naming the file and what was found and expected (missing file, no
/// JSON, unknown version, wrong type, a configuration that does not sweeps::validate). A file
/// without `tasks` (written by hand) gets the built-in ones by name.
TrialFile read_trial_file(const std::filesystem::path& file);

}  // namespace petlab::protocol
