#include "orchestrator/recovery/evidence.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/worker_mark.h"

namespace petlab::orchestrator {
namespace {

// A process that survives SIGKILL for this long is in an uninterruptible wait.
constexpr auto kKilled = std::chrono::seconds(5);

std::vector<std::filesystem::path> worker_locks(const std::filesystem::path& locks,
                                                const std::string& owner) {
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& entry : base::entries_of(locks)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(owner + ".") && name != owner + ".lock" && name.ends_with(".lock")) {
      found.push_back(entry);
    }
  }
  return found;
}

bool same_pids(const protocol::AttemptBegun& begun, const HostIdentity& here) {
  return begun.boot_id == here.boot_id && begun.pid_namespace == here.pid_namespace;
}

bool comparable(const protocol::AttemptBegun& begun, const HostIdentity& here) {
  return begun.boot_id == here.boot_id || begun.host == here.host;
}

bool owner_process_lives(const protocol::AttemptBegun& begun, const HostIdentity& here) {
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
  const nlohmann::json about = base::shallow_json_or_none(in);
  if (!about.is_object()) return std::nullopt;
  const HostIdentity host{about.value("host", ""), about.value("boot_id", ""),
                          about.value("pid_namespace", "")};
  if (host.host.empty() && host.boot_id.empty()) return std::nullopt;
  return host;
}

bool in_queue(const protocol::AttemptBegun& begun) { return begun.launcher == "slurm"; }

std::string where_it_runs(const results::AttemptFacts& attempt) {
  if (!in_queue(attempt.begun)) return "on " + attempt.begun.host;
  if (!attempt.launch || attempt.launch->job.empty())
    return "in Slurm, as a job with no known id yet";
  const std::string host = attempt.launch->host.empty() ? "" : " on " + attempt.launch->host;
  return "as Slurm job " + attempt.launch->job + host;
}

Liveness liveness(const protocol::AttemptBegun& begun, const std::filesystem::path& locks,
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
  // A missing lock proves nothing: the user may have named another runs folder.
  std::error_code error;
  if (!std::filesystem::exists(owner_lock(locks, begun.owner), error) &&
      owner_process_lives(begun, here)) {
    return Liveness::alive;
  }
  return Liveness::dead;
}

std::optional<DeadOwner> DeadOwner::take(const protocol::AttemptBegun& begun,
                                         const std::filesystem::path& locks,
                                         const HostIdentity& here, std::chrono::milliseconds grace,
                                         Time now) {
  if (!comparable(begun, here)) return std::nullopt;
  const std::filesystem::path file = owner_lock(locks, begun.owner);
  std::error_code error;
  const bool was_there = std::filesystem::exists(file, error);
  if (!was_there && owner_process_lives(begun, here)) return std::nullopt;
  std::optional<LockFile> lock = LockFile::try_lock(file);
  if (!lock) return std::nullopt;
  DeadOwner owner(std::move(*lock), locks, begun.owner, now + grace);
  owner.find_workers(true);
  return owner;
}

void DeadOwner::find_workers(bool ask) {
  for (const std::filesystem::path& worker : worker_locks(locks_, owner_)) {
    std::vector<base::ProcessHandle> found;
    for (const pid_t pid : processes_with_environment(kWorkerVariable, worker.string())) {
      base::ProcessHandle process = hold_process(pid, kWorkerVariable, worker.string());
      if (process) found.push_back(std::move(process));
    }
    const bool first = ask && !found.empty() && first_to_ask(asked_file(worker).c_str());
    for (base::ProcessHandle& process : found) {
      if (first) process.send(SIGTERM);
      // A stopped process handles SIGTERM only after SIGCONT.
      if (ask) process.send(SIGCONT);
      left_.push_back(std::move(process));
    }
  }
}

DeadOwner::Workers DeadOwner::look(Time now) {
  std::erase_if(left_, [](const base::ProcessHandle& process) { return process.is_gone(); });
  // The processes found before may have started others.
  if (left_.empty()) find_workers(false);
  if (left_.empty()) {
    const std::vector<std::filesystem::path> workers = worker_locks(locks_, owner_);
    // A lock is held, although no process of this pid namespace belongs to the worker.
    return std::any_of(workers.begin(), workers.end(),
                       [](const auto& lock) { return LockFile::is_held(lock); })
               ? Workers::unseen
               : Workers::gone;
  }
  if (now < kill_at_) return Workers::ending;
  for (const base::ProcessHandle& process : left_) process.send(SIGKILL);
  return now < kill_at_ + kKilled ? Workers::ending : Workers::lasting;
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
