#include "exchange/check_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "exchange/attempt_copy.h"
#include "exchange/garbage.h"
#include "exchange/incoming.h"
#include "protocol/artifact_format.h"
#include "protocol/trial_directory.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;
using Artifact = results::ContentsReader::Artifact;
using orchestrator::LockFile;

// Every artifact of petlab-trainer begins like this. Those of other workers may have any format.
bool begins_as_petlabs(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string begin(5, '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return in && begin == "\x89PETL";
}

}  // namespace

void FileCheck::check_artifacts(const std::vector<Artifact>& artifacts) {
  for (const Artifact& artifact : artifacts) {
    if (artifact.path.empty()) continue;
    const protocol::TrialDirectory directory(places_.runs, artifact.trial_id, artifact.attempt);
    const fs::path file = directory.folder() / artifact.path;
    std::error_code error;
    if (!fs::is_directory(directory.folder(), error)) continue;  // already reported
    if (fs::is_regular_file(file, error)) {
      check_artifact(artifact, file);
      continue;
    }
    if (!artifact.counts) continue;
    std::optional<MergeNote> note;
    try {
      note = read_merge_note(directory.folder());
    } catch (const std::runtime_error&) {
      // check_notes reports it.
    }
    if (note && std::find(note->left_out.begin(), note->left_out.end(), artifact.path) !=
                    note->left_out.end()) {
      report_.notes.push_back(
          fmt::format("{}: was left out of its source, {}; petlab db import from a source that has "
                      "it copies it",
                      file.string(), note->from));
      continue;
    }
    report_.findings.push_back(
        {"no_artifact", artifact.trial_id, artifact.attempt, file, "the artifact is missing",
         fmt::format("restore it, import it from a copy (petlab db import COPY {}), or recompute "
                     "it: petlab run SWEEP --rerun {}",
                     places_.database_word, artifact.trial_id)});
  }
}

void FileCheck::check_artifact(const Artifact& artifact, const fs::path& file) {
  ++report_.artifacts;
  std::error_code error;
  report_.bytes += fs::file_size(file, error);
  const auto find = [&](const std::string& text) {
    report_.findings.push_back(
        {"damaged_artifact", artifact.trial_id, artifact.attempt, file, text,
         fmt::format("move it and import it from a copy (petlab db import COPY {}), or recompute "
                     "it: petlab run SWEEP --rerun {}",
                     places_.database_word, artifact.trial_id)});
  };
  if (!begins_as_petlabs(file)) {
    if (fs::file_size(file, error) == 0) find("it is empty");
    if (file.filename() == "artifact.petl" && fs::file_size(file, error) > 0) {
      report_.notes.push_back(fmt::format(
          "{}: not an artifact of petlab-trainer; its content is not checked", file.string()));
    }
    return;
  }
  try {
    const protocol::ArtifactStorage storage = protocol::read_artifact_storage(file);
    if (storage.trial_id != artifact.trial_id) {
      find(fmt::format("it is the artifact of trial {}", storage.trial_id));
    } else if (artifact.stored_bits &&
               static_cast<std::uint64_t>(*artifact.stored_bits) != storage.stored_bits()) {
      find(fmt::format("it holds {} bits, the database records {}", storage.stored_bits(),
                       *artifact.stored_bits));
    }
  } catch (const std::runtime_error& why) {
    find(why.what());
  }
}

void FileCheck::check_notes() {
  for (const fs::path& trial : base::entries_of(places_.runs)) {
    if (trial.filename().string().starts_with(".")) continue;
    for (const fs::path& folder : base::entries_of(trial)) {
      const auto number = protocol::attempt_number(folder.filename().string());
      if (!number) continue;
      const auto find = [&](const fs::path& file, const std::string& text,
                            const std::string& from) {
        report_.findings.push_back(
            {"other_file", trial.filename().string(), *number, file, text,
             fmt::format("restore it from its source ({}), or from a copy of that", from)});
      };
      try {
        const auto note = read_merge_note(folder);
        if (!note) continue;
        for (const auto& [name, wanted] : note->files) {
          std::error_code error;
          if (!fs::exists(folder / name, error)) {
            // check_artifacts reports missing artifacts.
            if (name == "trial.json" || name == "events.jsonl") {
              find(folder / name, "it is missing", note->from);
            }
            continue;
          }
          const FileDigest found = digest_of_file(folder / name);
          report_.bytes += found.size;
          if (found != wanted) {
            find(folder / name,
                 fmt::format("its content has digest {}, its source had {}", found.digest,
                             wanted.digest),
                 note->from);
          }
        }
      } catch (const std::runtime_error& why) {
        find(merge_note_file(folder), why.what(), "its copy");
      }
    }
  }
}

void FileCheck::look_for_leftovers() {
  if (LockFile::is_held(incoming_lock(places_.runs))) return;
  const auto look = [&](const fs::path& folder, const char* text, const std::string& fix) {
    std::error_code error;
    if (!fs::exists(folder, error)) return;
    report_.findings.push_back({"left_behind", "", 0, folder, text, fix});
  };
  look(incoming_folder(places_.runs), "a merge or an import did not finish",
       "repeat the petlab db merge or petlab db import: it copies the rest and cleans up");
  look(garbage_folder(places_.runs), "a petlab db gc did not finish",
       "petlab db gc " + places_.database_word + " removes it");
}

}  // namespace petlab::exchange
