#include "base/control_groups.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace petlab::base {
namespace {

namespace fs = std::filesystem;

// Version 1 reports "no limit" as the largest number of whole pages.
constexpr std::uint64_t kNoMemoryLimit = std::uint64_t{1} << 62;

// A mounted hierarchy of control groups.
struct GroupMount {
  bool is_version_2 = false;
  std::vector<std::string> controllers;  // version 1 only
  fs::path root;                         // the group shown at the mount point
  fs::path point;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// mountinfo escapes a space as \040.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int code = 0;
    if (text[at] == '\\' && at + 3 < text.size() &&
        std::from_chars(&text[at + 1], &text[at + 4], code, 8).ptr == &text[at + 4]) {
      plain += static_cast<char>(code);
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

// Parses lines such as "33 31 0:30 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup
// rw,cpu,cpuacct".
std::vector<GroupMount> group_mounts(const fs::path& mountinfo) {
  std::vector<GroupMount> mounts;
  std::ifstream in(mountinfo);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const std::string& type = dash[1];
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup2", split(dash[3], ','), without_escapes(words[3]),
                      without_escapes(words[4])});
  }
  return mounts;
}

// The folder of the group `path` below the mount point. Returns the mount point if the group is not
// visible below it, as in a container.
fs::path group_folder(const GroupMount& mount, const fs::path& path, const fs::path& root) {
  const fs::path point = root / mount.point.relative_path();
  const fs::path inner = path.lexically_relative(mount.root);
  std::error_code error;
  if (inner.empty() || *inner.begin() == ".." || *inner.begin() == ".") return point;
  return fs::is_directory(point / inner, error) ? point / inner : point;
}

std::optional<double> first_number(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

std::optional<double> processors_of(const fs::path& group, bool is_version_2) {
  double quota = 0;
  double period = 0;
  if (is_version_2) {
    std::ifstream in(group / "cpu.max");  // "50000 100000", "max 100000"
    if (!(in >> quota >> period)) return std::nullopt;
  } else {
    quota = first_number(group / "cpu.cfs_quota_us").value_or(-1);  // -1: no limit
    period = first_number(group / "cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

std::optional<std::uint64_t> memory_of(const fs::path& group, bool is_version_2) {
  std::ifstream in(group / (is_version_2 ? "memory.max" : "memory.limit_in_bytes"));
  std::uint64_t bytes = 0;
  return in >> bytes && bytes < kNoMemoryLimit ? std::optional(bytes) : std::nullopt;
}

}  // namespace

GroupLimits group_limits(const fs::path& root) {
  GroupLimits limits;
  const std::vector<GroupMount> mounts = group_mounts(root / "proc/self/mountinfo");
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    // "4:cpu,cpuacct:/docker/ab", "0::/user.slice"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers =
        split(line.substr(first + 1, second - first - 1), ',');
    const fs::path path = line.substr(second + 1);
    const bool is_version_2 = controllers.empty();
    for (const GroupMount& mount : mounts) {
      if (mount.is_version_2 != is_version_2) continue;
      if (!is_version_2 && !contains(mount.controllers, controllers.front())) continue;
      const fs::path point = root / mount.point.relative_path();
      for (fs::path group = group_folder(mount, path, root);; group = group.parent_path()) {
        if (is_version_2 || contains(controllers, "cpu")) {
          const std::optional<double> processors = processors_of(group, is_version_2);
          if (processors && (!limits.processors || *processors < *limits.processors)) {
            limits.processors = processors;
            limits.processors_group = group;
          }
        }
        if (is_version_2 || contains(controllers, "memory")) {
          if (const auto memory = memory_of(group, is_version_2)) {
            limits.memory_bytes = std::min(*memory, limits.memory_bytes.value_or(*memory));
          }
        }
        if (group == point || group == group.root_path()) break;
      }
    }
  }
  return limits;
}

}  // namespace petlab::base
