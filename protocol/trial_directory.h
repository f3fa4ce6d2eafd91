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

/// The file names in an attempt's folder (docs/reference/worker-protocol.md). Only this class
/// builds and parses `runs/<trial id>/<attempt>/…`. Does no I/O.
class TrialDirectory {
 public:
  TrialDirectory(const std::filesystem::path& runs, const std::string& trial_id,
                 std::int64_t attempt);
  /// From the path of an attempt's folder. Throws std::invalid_argument if its last component is
  /// not an attempt number.
  explicit TrialDirectory(const std::filesystem::path& attempt_folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& trial_id() const { return trial_id_; }
  std::int64_t attempt() const { return attempt_; }
  std::filesystem::path trial_json() const { return folder_ / "trial.json"; }
  std::filesystem::path events() const { return folder_ / "events.jsonl"; }
  std::filesystem::path log() const { return folder_ / "log.txt"; }
  std::filesystem::path checkpoint() const { return folder_ / "checkpoint"; }
  /// petlab's link to, or copy of, the checkpoint that the attempt resumes from.
  std::filesystem::path resume() const { return folder_ / "resume"; }
  std::filesystem::path artifact() const { return folder_ / "artifact.petl"; }
  /// The folder of a trial's test predictions: classes and scores, and also texts with
  /// evaluation.keep_predictions. `petlab score` compares the two files of each task. Task names
  /// are escaped as in sweep_file().
  std::filesystem::path predictions() const { return folder_ / "predictions"; }
  std::filesystem::path gold_file(const std::string& task, bool texts) const;
  std::filesystem::path predicted_file(const std::string& task, bool texts) const;
  /// petlab's request to stop this attempt alone, an empty file.
  std::filesystem::path stop() const { return folder_ / "stop"; }
  /// petlab's record of the attempt: begun, launched, ended.
  std::filesystem::path attempt_log() const { return folder_ / "attempt.jsonl"; }

 private:
  std::filesystem::path folder_;
  std::string trial_id_;
  std::int64_t attempt_ = 0;
};

/// The line that a worker prints before it begins an attempt, to separate its output from that of
/// the previous attempt (docs/reference/worker-protocol.md): kAnnouncement, the folder as received,
/// a newline.
constexpr char kAnnouncement = '\x1e';
std::string announcement(const std::string& attempt_folder);
/// The line of standard input that gives a worker an attempt, or several to train together, without
/// its newline.
std::string line_of(const std::vector<std::filesystem::path>& attempt_folders);

/// runs/<trial id>: the attempts of a trial.
std::filesystem::path trial_folder(const std::filesystem::path& runs, const std::string& trial_id);
/// runs/<trial id>/decisions.jsonl: the user's decisions about the trial.
std::filesystem::path decisions_file(const std::filesystem::path& runs,
                                     const std::string& trial_id);
/// runs/<trial id>/remarks.jsonl: the user's tags and notes.
std::filesystem::path remarks_file(const std::filesystem::path& runs, const std::string& trial_id);
/// runs/sweeps: petlab's records of sweeps.
std::filesystem::path sweeps_folder(const std::filesystem::path& runs);
/// runs/sweeps/<name>.jsonl. In the name, everything except ASCII letters, digits, '.', '_' and '-'
/// is escaped as %XX, and so is a leading dot.
std::filesystem::path sweep_file(const std::filesystem::path& runs, const std::string& name);
/// runs/sweeps/<name>.remarks: a sweep's tags and notes. The name is escaped as in sweep_file().
std::filesystem::path sweep_remarks_file(const std::filesystem::path& runs,
                                         const std::string& name);
/// runs/sweeps/<name>.delivered: the delivered events of a sweep. The name is escaped as in
/// sweep_file().
std::filesystem::path delivered_events_file(const std::filesystem::path& runs,
                                            const std::string& name);
/// runs/sweeps/<digest>.yaml, with '-' for the digest's colon: the text of a sweep file that was
/// run.
std::filesystem::path sweep_text_file(const std::filesystem::path& runs, const std::string& digest);
/// Parses the name of an attempt's folder ("12"); std::nullopt for any other name.
std::optional<std::int64_t> attempt_number(const std::string& folder_name);

/// "resume/step-120.ckpt": the place of another attempt's checkpoint, relative to the attempt's
/// folder.
std::string kept_checkpoint(const std::filesystem::path& checkpoint);

/// The point from which an attempt resumes (docs/reference/worker-protocol.md, `resume`).
struct Resume {
  std::int64_t attempt = 0;  // the parent attempt
  std::int64_t step = 0;
  std::int64_t seq = 0;    // seq of the parent's checkpoint event
  std::string checkpoint;  // relative to the new attempt's folder
  bool operator==(const Resume&) const = default;
};

/// The contents of `trial.json`.
struct TrialFile {
  std::string trial_id;
  std::int64_t attempt = 1;
  sweeps::TrialConfig config;
  /// Declarations in the order of config.tasks, so that workers need no catalog.
  std::vector<sweeps::TaskDeclaration> tasks;
  std::filesystem::path backbone_folder;
  std::vector<std::filesystem::path> data_folders;
  std::string backbone_digest;                      // "sha256:…"; empty if unknown
  std::map<std::string, std::string> data_digests;  // by task
  std::int64_t threads = 1;
  std::string device = "cpu";          // or "cuda", "rocm"
  std::string device_uuid;             // of the GPU; may be empty
  std::int64_t device_memory_mib = 0;  // reserved for the worker; 0 if unknown
  std::optional<Resume> resume;
};

/// Writes `trial.json` under a temporary name, syncs and renames it. Throws base::Error.
void write_trial_file(const std::filesystem::path& file, const TrialFile& content);

/// Throws base::Error naming the file and the found and expected content (missing file, no JSON,
/// unknown version, wrong type, a configuration rejected by sweeps::validate). If a file has no
/// `tasks` (written by hand), uses the built-in ones of these names.
TrialFile read_trial_file(const std::filesystem::path& file);

}  // namespace petlab::protocol
