#include "orchestrator/host/process_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/files.h"

namespace petlab::orchestrator {
namespace {

// Files in /proc report size 0, and reading fails once the process has ended: returns what could be
// read.
std::string read_proc(const std::string& file) {
  const base::FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; fd && (got = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

HostIdentity this_host() {
  HostIdentity identity;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) identity.host = name.data();
  identity.boot_id = read_proc("/proc/sys/kernel/random/boot_id");
  while (!identity.boot_id.empty() && identity.boot_id.back() == '\n') identity.boot_id.pop_back();
  std::error_code none;
  identity.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
  return identity;
}

std::optional<std::int64_t> process_start(pid_t pid) {
  const std::string stat = read_proc("/proc/" + std::to_string(pid) + "/stat");
  // The process name may itself contain parentheses, so fields are counted from the last one.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  // " S 1 2 …": the state is field 3.
  std::string_view fields = std::string_view(stat).substr(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    fields.remove_prefix(std::min(fields.find_first_not_of(' '), fields.size()));
    const std::string_view word = fields.substr(0, fields.find(' '));
    fields.remove_prefix(word.size());
    if (field == 3 && (word == "Z" || word == "X")) return std::nullopt;
    if (field < 22) continue;
    std::int64_t start = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), start);
    if (parsed.ec == std::errc()) return start;
  }
  return std::nullopt;
}

namespace {

bool has_environment(pid_t pid, const std::string& name, const std::string& value) {
  const std::string environment = '\0' + read_proc(fmt::format("/proc/{}/environ", pid));
  return environment.find('\0' + name + "=" + value + '\0') != std::string::npos;
}

}  // namespace

std::vector<pid_t> processes_with_environment(const std::string& name, const std::string& value) {
  std::vector<pid_t> found;
  for (const std::filesystem::path& entry : base::entries_of("/proc")) {
    const std::string folder = entry.filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(folder.data(), folder.data() + folder.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != folder.data() + folder.size()) continue;
    if (pid != ::getpid() && has_environment(pid, name, value)) found.push_back(pid);
  }
  return found;
}

// Opens the handle before reading /proc. What is read then belongs to the handle's process, or that
// process is gone and cannot be signalled.
base::ProcessHandle hold_process(pid_t pid, const std::string& name, const std::string& value) {
  base::ProcessHandle handle(pid);
  return handle && has_environment(pid, name, value) ? std::move(handle) : base::ProcessHandle();
}

base::ProcessHandle hold_process(pid_t pid, std::int64_t start) {
  base::ProcessHandle handle(pid);
  return handle && process_start(pid) == start ? std::move(handle) : base::ProcessHandle();
}

}  // namespace petlab::orchestrator
