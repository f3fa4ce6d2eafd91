#include "base/machine.h"

#include "base/build_info.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::base {

TEST_CASE("A machine is described by the files of its kernel", "[base]") {
  const testing::TempDir proc;
  proc.write("cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC: 9V74\nmodel name\t: other\n");
  std::filesystem::create_directories(proc.path() / "driver/nvidia/gpus/0000:01:00.0");
  std::filesystem::create_directories(proc.path() / "driver/nvidia/gpus/0000:02:00.0");
  proc.write("driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n"
             "GCC version:  gcc version 12.2.0\n");
  proc.write("driver/nvidia/gpus/0000:01:00.0/information",
             "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-1\n");
  proc.write("driver/nvidia/gpus/0000:02:00.0/information",
             "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-2\n");
  const Machine machine = this_machine(proc.path());
  CHECK(machine.processor == "AMD EPYC: 9V74");
  CHECK(machine.gpu_driver == "550.54.15");
  CHECK(machine.kernel.starts_with("Linux "));
  CHECK(gpu_model("GPU-2", proc.path()) == "NVIDIA H100 80GB HBM3");
  CHECK(gpu_model("GPU-3", proc.path()).empty());
}

TEST_CASE("Without kernel files a machine is described by its architecture", "[base]") {
  const testing::TempDir proc;
  const Machine machine = this_machine(proc.path());
  CHECK_FALSE(machine.processor.empty());
  CHECK(machine.gpu_driver.empty());
  CHECK(gpu_model("GPU-1", proc.path()).empty());
}

TEST_CASE("A build reports its commit, and whether there were changes", "[base]") {
  CHECK(commit_text({"2d8f6bf", true, "", ""}) == "2d8f6bf");
  CHECK(commit_text({"2d8f6bf", false, "", ""}) == "2d8f6bf+changes");
  CHECK(commit_text({"unknown", std::nullopt, "", ""}) == "unknown");
  CHECK_FALSE(build_info().commit.empty());
  CHECK((build_info().commit == "unknown") == !build_info().clean.has_value());
  CHECK_FALSE(build_info().compiler.empty());
}

}  // namespace petlab::base
