#include <algorithm>
#include <optional>

#include "cli/setup/doctor_checks.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;

TEST_CASE("doctor reports version 1 limits of half a processor and 800 MB", "[cli]") {
  const testing::TempDir folder;
  folder.write("proc/self/mountinfo",
               "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
               "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  folder.write("proc/self/cgroup", "4:memory:/docker/ab\n1:cpu:/docker/ab\n");
  folder.write("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\n");
  folder.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  folder.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "838860800\n");
  const sweeps::Environment environment =
      [&](const std::string& name) -> std::optional<std::string> {
    if (name == "PETLAB_SLOTS") return (folder.path() / "slots").string();
    return std::nullopt;
  };
  cli::DoctorRequest request;
  request.database = folder.path() / "petlab.db";
  request.runs = folder.path() / "runs";
  request.worker = "/bin/true";
  request.root = folder.path();
  const cli::Diagnosis diagnosis = cli::diagnose(request, environment);
  const auto check = [&](const std::string& name) {
    return *std::find_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                         [&](const cli::Check& one) { return one.name == name; });
  };
  CHECK(check("cores").facts["usable"] == 1);
  CHECK(check("cores").facts["quota"] == 0.5);
  CHECK(check("memory").found == "4.0 GiB, 2.0 GiB free, 0.8 GiB for this control group");
  CHECK(diagnosis.uses["slots"] == 1);
}
