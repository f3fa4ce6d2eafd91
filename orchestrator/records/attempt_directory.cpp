#include "orchestrator/records/attempt_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/fault_point.h"
#include "protocol/attempt_log.h"
#include "protocol/trial_file_text.h"
#include "results/code.h"

namespace petlab::orchestrator {
namespace {

constexpr std::uintmax_t kMostTrialBytes = std::uintmax_t{16} << 20;

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno)));
}

void write_new(const std::filesystem::path& file, const std::string& text) {
  const base::FileDescriptor out(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!out || !base::write_all(out.get(), text)) fail(file, "cannot be written");
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
}

// Prefix of the temporary name of an attempt's folder.
std::string unfinished_prefix(const protocol::TrialDirectory& directory) {
  return fmt::format(".{}.new-", directory.attempt());
}

void sync(const std::filesystem::path& file) {
  const base::FileDescriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) fail(file, "cannot be read");
  if (fsync(in.get()) != 0) fail(file, "cannot be written");
}

// Returns false if `from` does not exist.
bool link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  // No hard links on this file system, another user's file, or too many links to it.
  for (const int no_link : {EPERM, EACCES, EXDEV, EMLINK, EOPNOTSUPP, ENOSYS}) {
    if (errno != no_link) continue;
    std::error_code error;
    std::filesystem::copy_file(from, to, error);
    if (error == std::errc::no_such_file_or_directory) return false;
    if (error) {
      errno = error.value();
      break;
    }
    sync(to);
    return true;
  }
  fail(to, "cannot be created");
}

}  // namespace

bool make_attempt_directory(const protocol::TrialDirectory& directory,
                            const protocol::TrialFile& trial, const protocol::AttemptBegun& begun,
                            const std::filesystem::path& checkpoint) {
  const std::filesystem::path parent = directory.folder().parent_path();
  const std::filesystem::path unfinished =
      parent / fmt::format("{}{}", unfinished_prefix(directory), getpid());
  std::error_code ignored;
  // Usually neither folder exists, so the code relies on the errors of mkdir and makes no checks
  // first.
  if (mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST) make_folders(parent);
  if (mkdir(unfinished.c_str(), 0777) != 0) {
    std::filesystem::remove_all(unfinished, ignored);
    if (mkdir(unfinished.c_str(), 0777) != 0) fail(unfinished, "cannot be created");
  }
  const auto give_up = [&] { std::filesystem::remove_all(unfinished, ignored); };
  try {
    if (!checkpoint.empty()) {
      const std::filesystem::path kept = unfinished / begun.resume->checkpoint;
      make_folders(kept.parent_path());
      if (!link_or_copy(checkpoint, kept)) {
        give_up();
        return false;
      }
    }
    // Not synced, because syncing would dominate petlab's cost of a short trial. After a power
    // failure, restore_attempt_files() rewrites lost contents.
    write_new(unfinished / directory.trial_json().filename(),
              protocol::trial_file_text(directory.trial_json(), trial));
    protocol::log_begun(unfinished / directory.attempt_log().filename(), begun);
  } catch (...) {
    give_up();
    throw;
  }
  fault_point("directory_written");
  // rename() replaces only empty folders, and attempt folders never are empty.
  if (rename(unfinished.c_str(), directory.folder().c_str()) != 0) {
    const int error = errno;
    give_up();
    errno = error;
    fail(directory.folder(), "cannot be created");
  }
  return true;
}

bool request_stop(const protocol::TrialDirectory& directory) {
  const base::FileDescriptor out(
      open(directory.stop().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  return static_cast<bool>(out);
}

void restore_attempt_files(const results::Reader& known, const protocol::TrialDirectory& directory,
                           const results::AttemptFacts& facts) {
  protocol::AttemptLog log = protocol::read_attempt_log(directory);
  if (!log.begun || (facts.launch && !log.launch)) {
    if (!log.begun) {
      log.begun = facts.begun;
      log.begun->provenance = known.provenance(facts.attempt).petlab;
    }
    if (!log.launch && facts.launch) {
      log.launch = facts.launch;
      log.launch->code = results::launch_code_of(known.provenance(facts.attempt));
    }
    protocol::write_attempt_log(directory, log);
  }
  const std::filesystem::path file = directory.trial_json();
  const std::optional<std::string> text = base::read_file_if_any(file, kMostTrialBytes);
  if (text && base::shallow_json_or_none(*text).is_object()) return;
  const std::optional<results::TrialRow> trial = known.trial(directory.trial_id());
  if (!trial) return;
  nlohmann::ordered_json json = {
      {"v", 1},
      {"trial", directory.trial_id()},
      {"attempt", directory.attempt()},
      {"config", base::parse_shallow_ordered_json(trial->config, file.string())},
      {"digests", {{"backbone", facts.backbone_digest}, {"data", facts.data_digests}}}};
  if (const auto& resume = facts.begun.resume) {
    json["resume"] = {{"attempt", resume->attempt},
                      {"step", resume->step},
                      {"seq", resume->seq},
                      {"checkpoint", resume->checkpoint}};
  }
  base::write_file_atomically(file, json.dump(2) + "\n");
}

void remove_unfinished_directories(const protocol::TrialDirectory& directory) {
  const std::string prefix = unfinished_prefix(directory);
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory.folder().parent_path(), error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  for (const std::filesystem::path& folder : found) std::filesystem::remove_all(folder, error);
}

bool is_unfinished_directory(const std::string& name) {
  constexpr std::string_view kNew = ".new-";
  const std::size_t at = name.find(kNew);
  return name.starts_with('.') && at != std::string::npos &&
         protocol::attempt_number(name.substr(1, at - 1)) &&
         protocol::attempt_number(name.substr(at + kNew.size()));
}

std::int64_t highest_attempt_directory(const std::filesystem::path& runs,
                                       const std::string& trial_id) {
  std::int64_t highest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(protocol::trial_folder(runs, trial_id), error),
       end;
       !error && entry != end; entry.increment(error)) {
    highest =
        std::max(highest, protocol::attempt_number(entry->path().filename().string()).value_or(0));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(fmt::format("{}: cannot be read: {}",
                            protocol::trial_folder(runs, trial_id).string(), error.message()));
  }
  return highest;
}

}  // namespace petlab::orchestrator
