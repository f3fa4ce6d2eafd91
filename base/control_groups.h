#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace petlab::base {

/// What the control groups of this process allow it: of its own groups and all above them the
/// least, of version 1, version 2 and both side by side. A container or a job may use no more,
/// however much the machine has.
struct GroupLimits {
  std::optional<double> processors;           // processor time: 0.5 is half a processor
  std::filesystem::path processors_group;     // the folder of the group that limits it
  std::optional<std::uint64_t> memory_bytes;  // absent: no limit
};

/// Those of this process. `root` holds proc/ and the mount points that proc/self/mountinfo names;
/// it is "/" but in tests. What cannot be read limits nothing.
GroupLimits group_limits(const std::filesystem::path& root = "/");

}  // namespace petlab::base
