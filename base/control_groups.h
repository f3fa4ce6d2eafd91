#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace petlab::base {

/// The limits of this process by its control groups: the smallest over its groups and all of their
/// ancestors, in versions 1 and 2. They restrict containers and jobs to a part of the machine.
struct GroupLimits {
  std::optional<double> processors;           // 0.5 is half a processor
  std::filesystem::path processors_group;     // the folder of the limiting group
  std::optional<std::uint64_t> memory_bytes;  // absent: no limit
};

/// The limits of this process. `root` contains proc/ and the mount points of proc/self/mountinfo;
/// only tests change it. An unreadable file sets no limit.
GroupLimits group_limits(const std::filesystem::path& root = "/");

}  // namespace petlab::base
