#include "protocol/trial_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace petlab::protocol {
namespace {

/// Escapes a name for use as a file name on any system.
std::string plain_name(const std::string& name) {
  std::string file;
  for (const unsigned char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !file.empty());
    file += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return file;
}

}  // namespace

TrialDirectory::TrialDirectory(const std::filesystem::path& runs, const std::string& trial_id,
                               std::int64_t attempt)
    : folder_(trial_folder(runs, trial_id) / std::to_string(attempt)),
      trial_id_(trial_id),
      attempt_(attempt) {}

TrialDirectory::TrialDirectory(const std::filesystem::path& attempt_folder)
    : folder_(attempt_folder.has_filename() ? attempt_folder : attempt_folder.parent_path()) {
  const std::string name = folder_.filename().string();
  const auto number = attempt_number(name);
  if (!number) {
    throw std::invalid_argument(
        fmt::format("{}: the last part is '{}', must be the number of an attempt (runs/TRIAL/1)",
                    attempt_folder.string(), name));
  }
  attempt_ = *number;
  trial_id_ = folder_.parent_path().filename().string();
}

std::filesystem::path trial_folder(const std::filesystem::path& runs, const std::string& trial_id) {
  return runs / trial_id;
}

std::filesystem::path decisions_file(const std::filesystem::path& runs,
                                     const std::string& trial_id) {
  return trial_folder(runs, trial_id) / "decisions.jsonl";
}

std::filesystem::path remarks_file(const std::filesystem::path& runs, const std::string& trial_id) {
  return trial_folder(runs, trial_id) / "remarks.jsonl";
}

std::string kept_checkpoint(const std::filesystem::path& checkpoint) {
  return (std::filesystem::path("resume") / checkpoint.filename()).string();
}

std::filesystem::path sweeps_folder(const std::filesystem::path& runs) { return runs / "sweeps"; }

std::filesystem::path sweep_file(const std::filesystem::path& runs, const std::string& name) {
  return sweeps_folder(runs) / (plain_name(name) + ".jsonl");
}

std::filesystem::path sweep_remarks_file(const std::filesystem::path& runs,
                                         const std::string& name) {
  return sweeps_folder(runs) / (plain_name(name) + ".remarks");
}

std::filesystem::path delivered_events_file(const std::filesystem::path& runs,
                                            const std::string& name) {
  return sweeps_folder(runs) / (plain_name(name) + ".delivered");
}

std::filesystem::path TrialDirectory::gold_file(const std::string& task, bool texts) const {
  return predictions() / (plain_name(task) + ".gold" + (texts ? ".jsonl" : ".txt"));
}

std::filesystem::path TrialDirectory::predicted_file(const std::string& task, bool texts) const {
  return predictions() / (plain_name(task) + ".predicted" + (texts ? ".jsonl" : ".txt"));
}

std::string announcement(const std::string& attempt_folder) {
  return kAnnouncement + attempt_folder + "\n";
}

std::string line_of(const std::vector<std::filesystem::path>& attempt_folders) {
  std::string line;
  for (const std::filesystem::path& folder : attempt_folders) {
    line += (line.empty() ? "" : "\t") + folder.string();
  }
  return line;
}

std::filesystem::path sweep_text_file(const std::filesystem::path& runs,
                                      const std::string& digest) {
  std::string name = digest;
  std::replace(name.begin(), name.end(), ':', '-');
  return sweeps_folder(runs) / (name + ".yaml");
}

std::optional<std::int64_t> attempt_number(const std::string& folder_name) {
  std::int64_t number = 0;
  const char* const end = folder_name.data() + folder_name.size();
  const auto [stop, error] = std::from_chars(folder_name.data(), end, number);
  if (error != std::errc() || stop != end || number < 1) return std::nullopt;
  if (folder_name != std::to_string(number)) return std::nullopt;
  return number;
}

}  // namespace petlab::protocol
