#include "base/control_groups.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using base::group_limits;

namespace {

// A machine's control groups: mounts as systemd creates them, and the groups of the process.
class Machine {
 public:
  Machine& mount(const std::string& type, const std::string& root, const std::string& point,
                 const std::string& options) {
    mounts_ += "33 31 0:30 " + root + " " + point + " rw,nosuid - " + type + " " + type + " rw" +
               options + "\n";
    folder.write("proc/self/mountinfo", mounts_);
    return *this;
  }
  Machine& in_groups(const std::string& lines) {
    folder.write("proc/self/cgroup", lines);
    return *this;
  }
  Machine& file(const std::string& name, const std::string& text) {
    folder.write("sys/fs/cgroup/" + name, text + "\n");
    return *this;
  }
  base::GroupLimits limits() const { return group_limits(folder.path()); }

  testing::TempDir folder;

 private:
  std::string mounts_ = "27 1 254:0 / / rw - ext4 /dev/vda rw\n";
};

}  // namespace

TEST_CASE("Without control groups nothing is limited", "[base]") {
  Machine machine;
  CHECK_FALSE(machine.limits().processors);
  CHECK_FALSE(machine.limits().memory_bytes);
  machine.mount("cgroup2", "/", "/sys/fs/cgroup", "").in_groups("0::/user.slice\n");
  machine.file("user.slice/cpu.max", "max 100000").file("user.slice/memory.max", "max");
  CHECK_FALSE(machine.limits().processors);
  CHECK_FALSE(machine.limits().memory_bytes);
}

TEST_CASE("The lowest limit of a version 2 group and its parents counts", "[base]") {
  Machine machine;
  machine.mount("cgroup2", "/", "/sys/fs/cgroup", ",nsdelegate").in_groups("0::/a/b/c\n");
  machine.file("a/b/c/cpu.max", "400000 100000").file("a/b/c/memory.max", "9000000");
  CHECK(machine.limits().processors == 4.0);
  CHECK(machine.limits().memory_bytes == 9'000'000u);
  machine.file("a/b/cpu.max", "max 100000").file("a/cpu.max", "75000 50000");
  machine.file("a/memory.max", "800000000").file("a/b/memory.max", "8000000");
  CHECK(machine.limits().processors == 1.5);
  CHECK(machine.limits().processors_group == machine.folder.path() / "sys/fs/cgroup/a");
  CHECK(machine.limits().memory_bytes == 8'000'000u);
  machine.file("other/cpu.max", "1000 100000");
  CHECK(machine.limits().processors == 1.5);
}

TEST_CASE("A container sees its own group of version 2 as the root", "[base]") {
  Machine machine;
  machine.mount("cgroup2", "/", "/sys/fs/cgroup", "").in_groups("0::/\n");
  machine.file("cpu.max", "50000 100000").file("memory.max", "838860800");
  CHECK(machine.limits().processors == 0.5);
  CHECK(machine.limits().memory_bytes == 838'860'800u);
  // A group outside of the namespace.
  machine.in_groups("0::/../../job\n");
  CHECK(machine.limits().processors == 0.5);
}

TEST_CASE("Groups of version 1 limit processor time and memory", "[base]") {
  Machine machine;
  machine.mount("cgroup", "/", "/sys/fs/cgroup/cpu,cpuacct", ",cpu,cpuacct")
      .mount("cgroup", "/", "/sys/fs/cgroup/memory", ",memory")
      .mount("cgroup", "/", "/sys/fs/cgroup/systemd", ",xattr,name=systemd")
      .in_groups("9:name=systemd:/job\n4:memory:/slurm/job\n1:cpu,cpuacct:/slurm/job\n");
  const auto quota = [&](const std::string& group, const std::string& microseconds) {
    machine.file("cpu,cpuacct/" + group + "cpu.cfs_quota_us", microseconds);
    machine.file("cpu,cpuacct/" + group + "cpu.cfs_period_us", "100000");
  };
  quota("slurm/job/", "-1");
  machine.file("memory/slurm/job/memory.limit_in_bytes", "9223372036854771712");
  CHECK_FALSE(machine.limits().processors);
  CHECK_FALSE(machine.limits().memory_bytes);
  quota("slurm/job/", "50000");
  machine.file("memory/slurm/memory.limit_in_bytes", "838860800");
  CHECK(machine.limits().processors == 0.5);
  CHECK(machine.limits().memory_bytes == 838'860'800u);
  quota("slurm/", "25000");
  CHECK(machine.limits().processors == 0.25);
}

TEST_CASE("A container's version 1 mount shows the group of the container", "[base]") {
  Machine machine;
  machine.mount("cgroup", "/docker/ab", "/sys/fs/cgroup/cpu", ",cpu")
      .in_groups("1:cpu:/docker/ab\n");
  machine.file("cpu/cpu.cfs_quota_us", "200000").file("cpu/cpu.cfs_period_us", "100000");
  CHECK(machine.limits().processors == 2.0);
  machine.in_groups("1:cpu:/docker/ab/inner\n");
  machine.file("cpu/inner/cpu.cfs_quota_us", "100000")
      .file("cpu/inner/cpu.cfs_period_us", "100000");
  CHECK(machine.limits().processors == 1.0);
  // The group has a path of the host that is not in the mount.
  machine.in_groups("1:cpu:/elsewhere\n");
  CHECK(machine.limits().processors == 2.0);
}

TEST_CASE("If both versions are mounted, each counts for its controllers", "[base]") {
  Machine machine;
  machine.mount("cgroup", "/", "/sys/fs/cgroup/cpu", ",cpu")
      .mount("cgroup2", "/", "/sys/fs/cgroup/unified", "")
      .in_groups("1:cpu:/job\n0::/job\n");
  machine.file("cpu/job/cpu.cfs_quota_us", "300000").file("cpu/job/cpu.cfs_period_us", "100000");
  machine.file("unified/job/memory.max", "1000000");
  CHECK(machine.limits().processors == 3.0);
  CHECK(machine.limits().memory_bytes == 1'000'000u);
}
