#include "orchestrator/evidence.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "orchestrator/guardian.h"
#include "orchestrator/local_launcher.h"
#include "sweeps/files.h"
#include "sweeps/shallow_json.h"

namespace petlab::orchestrator {
namespace {

std::vector<std::filesystem::path> worker_locks(const std::filesystem::path& locks,
                                                const std::string& owner) {
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& entry : sweeps::entries_of(locks)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(owner + ".") && name != owner + ".lock" && name.ends_with(".lock")) {
      found.push_back(entry);
    }
  }
  return found;
}

bool same_pids(const results::NewAttempt& begun, const HostIdentity& here) {
  return begun.boot_id == here.boot_id && begun.pid_namespace == here.pid_namespace;
}

bool comparable(const results::NewAttempt& begun, const HostIdentity& here) {
  return begun.boot_id == here.boot_id || begun.host == here.host;
}

bool owner_process_lives(const results::NewAttempt& begun, const HostIdentity& here) {
  const std::optional<OwnerName> name = owner_name_from(begun.owner);
  return name && same_pids(begun, here) &&
         process_start(static_cast<pid_t>(name->pid)) == name->start;
}

}  // namespace

std::string to_string(const OwnerName& name) {
  return fmt::format("{}-{}-{}", name.pid, name.start, name.suffix);
}

std::optional<OwnerName> owner_name_from(const std::string& text) {
  OwnerName name;
  const char* end = text.data() + text.size();
  const auto pid = std::from_chars(text.data(), end, name.pid);
  if (pid.ec != std::errc() || pid.ptr == end || *pid.ptr != '-') return std::nullopt;
  const auto start = std::from_chars(pid.ptr + 1, end, name.start);
  if (start.ec != std::errc() || start.ptr == end || *start.ptr != '-') return std::nullopt;
  name.suffix.assign(start.ptr + 1, end);
  return name;
}

std::filesystem::path locks_folder(const std::filesystem::path& runs) { return runs / ".locks"; }

std::filesystem::path owner_lock(const std::filesystem::path& locks, const std::string& owner) {
  return locks / (owner + ".lock");
}

std::optional<HostIdentity> lock_host(const std::filesystem::path& lock) {
  std::ifstream in(lock);
  const nlohmann::json about = sweeps::shallow_json_or_none(in);
  if (!about.is_object()) return std::nullopt;
  const HostIdentity host{about.value("host", ""), about.value("boot_id", ""),
                          about.value("pid_namespace", "")};
  if (host.host.empty() && host.boot_id.empty()) return std::nullopt;
  return host;
}

bool in_queue(const results::NewAttempt& begun) { return begun.launcher == "slurm"; }

std::string where_it_runs(const results::AttemptFacts& attempt) {
  if (!in_queue(attempt.begun)) return "on " + attempt.begun.host;
  if (!attempt.launch || attempt.launch->job.empty()) return "in Slurm, as a job not known yet";
  const std::string host = attempt.launch->host.empty() ? "" : " on " + attempt.launch->host;
  return "as Slurm job " + attempt.launch->job + host;
}

Liveness liveness(const results::NewAttempt& begun, const std::filesystem::path& locks,
                  const HostIdentity& here) {
  if (in_queue(begun)) {
    const bool watched = LockFile::is_held(owner_lock(locks, begun.owner));
    return watched ? Liveness::alive : Liveness::unknown;
  }
  if (!comparable(begun, here)) return Liveness::unknown;
  if (LockFile::is_held(owner_lock(locks, begun.owner))) return Liveness::alive;
  for (const std::filesystem::path& lock : worker_locks(locks, begun.owner)) {
    if (LockFile::is_held(lock)) return Liveness::alive;
  }
  // A lock that is not there says nothing: another runs folder may have been named.
  std::error_code error;
  if (!std::filesystem::exists(owner_lock(locks, begun.owner), error) &&
      owner_process_lives(begun, here)) {
    return Liveness::alive;
  }
  return Liveness::dead;
}

std::optional<DeadOwner> DeadOwner::take(const results::NewAttempt& begun,
                                         const std::filesystem::path& locks,
                                         const HostIdentity& here,
                                         std::chrono::milliseconds grace) {
  if (!comparable(begun, here)) return std::nullopt;
  const std::filesystem::path file = owner_lock(locks, begun.owner);
  std::error_code error;
  const bool was_there = std::filesystem::exists(file, error);
  if (!was_there && owner_process_lives(begun, here)) return std::nullopt;
  std::optional<LockFile> lock = LockFile::try_lock(file);
  if (!lock) return std::nullopt;
  DeadOwner owner(std::move(*lock), locks, begun.owner);
  for (const std::filesystem::path& worker : worker_locks(locks, begun.owner)) {
    const auto left = processes_with_environment(kWorkerVariable, worker.string());
    const bool ask = !left.empty() && first_to_ask(asked_file(worker).c_str());
    if (!end_processes(left, kWorkerVariable, worker.string(), static_cast<int>(grace.count()),
                       ask)) {
      return std::nullopt;
    }
    // Held, though no process of this pid namespace says that it is the worker's.
    if (LockFile::is_held(worker)) return std::nullopt;
  }
  return owner;
}

void DeadOwner::remove_files() {
  std::error_code ignored;
  for (const std::filesystem::path& worker : worker_locks(locks_, owner_)) {
    std::filesystem::remove(asked_file(worker), ignored);
    std::filesystem::remove(worker, ignored);
  }
  std::filesystem::remove(lock_.file(), ignored);
}

}  // namespace petlab::orchestrator
