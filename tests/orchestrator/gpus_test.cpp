#include "orchestrator/host/gpus.h"

#include <signal.h>

#include <fstream>
#include <map>

#include "orchestrator/host/error.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

namespace {

const std::string kOutput =
    "0, GPU-8f6ed6a5-1111-2222-3333-444444444444, 81559, 4\n"
    "1, GPU-9a0b1c2d-1111-2222-3333-444444444444, 81559, 70000\n";

sweeps::Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace

TEST_CASE("GPUs are read as nvidia-smi prints them", "[orchestrator]") {
  const GpuList list = parse_gpus(kOutput);
  REQUIRE(list.gpus.size() == 2);
  CHECK(list.gpus[1] == Gpu{1, "GPU-9a0b1c2d-1111-2222-3333-444444444444", 81559, 70000});
  CHECK(list.why_none.empty());
  CHECK(parse_gpus("").why_none == "nvidia-smi lists no GPU");
}

TEST_CASE("A GPU that tells no memory is left out and named", "[orchestrator]") {
  const GpuList list =
      parse_gpus(kOutput + "2, GPU-77, [GPU is lost], [GPU is lost]\n3, GPU-88, [N/A], [N/A]\r\n");
  CHECK(list.gpus.size() == 2);
  REQUIRE(list.notes.size() == 2);
  CHECK(list.notes[0] ==
        "GPU 2 (GPU-77) is left out: nvidia-smi tells no memory: '[GPU is lost]', '[GPU is lost]'");
}

TEST_CASE("What is no list of GPUs is refused with the line", "[orchestrator]") {
  for (const std::string line : {"No devices were found", "0, GPU-1, 5", "x, GPU-1, 5, 5",
                                 "0, 00000000:01:00.0, 5, 5", "0, GPU-1, 5, 5, 5"}) {
    INFO(line);
    CHECK_THROWS_WITH(
        parse_gpus(line + "\n"),
        "nvidia-smi printed '" + line + "', wanted index, uuid, memory.total, memory.used");
  }
}

TEST_CASE("CUDA_VISIBLE_DEVICES chooses by number and by UUID", "[orchestrator]") {
  const GpuList all = parse_gpus(kOutput);
  CHECK(only_visible(all, "1, 0").gpus.front().index == 1);
  CHECK(only_visible(all, "GPU-9a0b").gpus == std::vector<Gpu>{all.gpus[1]});
  CHECK(only_visible(all, "1,1").gpus.size() == 1);
  CHECK(only_visible(all, "").why_none == "CUDA_VISIBLE_DEVICES is ''");
  CHECK(only_visible(all, "0,-1,1").gpus.size() == 1);
  CHECK_THROWS_WITH(only_visible(all, "0,7"),
                    "CUDA_VISIBLE_DEVICES names '7', must be the number or UUID of a GPU that "
                    "nvidia-smi lists");
  CHECK_THROWS_WITH(only_visible(all, "MIG-1"),
                    "CUDA_VISIBLE_DEVICES names 'MIG-1', must be the number or UUID of a GPU that "
                    "nvidia-smi lists (parts of a GPU are not used)");
}

TEST_CASE("An nvidia-smi that is missing, fails or hangs is no GPU, and says why",
          "[orchestrator]") {
  using namespace std::chrono_literals;
  const testing::TempDir folder;
  const auto with = [&](const std::string& script) {
    testing::run_command("chmod +x " + folder.write("nvidia-smi", "#!/bin/sh\n" + script).string());
    return find_gpus(environment_of({{"PATH", folder.path().string()}}), 5s);
  };
  CHECK(find_gpus(environment_of({{"PATH", "/nowhere"}}), 1s).why_none ==
        "nvidia-smi is not on PATH");
  const GpuList failed = with("echo 'no driver'\nexit 9\n");
  CHECK(failed.failed);
  CHECK(failed.why_none == "nvidia-smi failed: no driver");
  CHECK(with("echo rubbish\n").why_none ==
        "nvidia-smi printed 'rubbish', wanted index, uuid, memory.total, memory.used");
  testing::run_command("chmod +x " +
                       folder.write("nvidia-smi", "#!/bin/sh\nexec /bin/sleep 60\n").string());
  CHECK(find_gpus(environment_of({{"PATH", folder.path().string()}}), 100ms).why_none ==
        "nvidia-smi does not answer");
  CHECK(with("/bin/cat <<'EOF'\n" + kOutput + "EOF\n").gpus.size() == 2);
}

TEST_CASE("An nvidia-smi that SIGKILL does not end is not waited for", "[orchestrator]") {
  using namespace std::chrono_literals;
  const testing::TempDir folder;
  // A process that is traced is not seen to end before its tracer lets it go: as one that the
  // driver holds.
  testing::run_command("chmod +x " + folder
                                         .write("nvidia-smi", R"py(#!/usr/bin/env python3
import ctypes, os, pathlib, time
here = pathlib.Path(__file__).parent
libc = ctypes.CDLL(None, use_errno=True)
own, tracer = os.getpid(), os.fork()
if tracer == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    for _ in range(1000):
        if libc.ptrace(0x4206, own, None, None) == 0:  # PTRACE_SEIZE
            (here / "pid").write_text(str(own))
            break
        time.sleep(0.001)
    for _ in range(6000):
        if (here / "let_go").exists():
            break
        time.sleep(0.01)
    os._exit(0)
libc.prctl(0x59616D61, tracer, 0, 0, 0)  # PR_SET_PTRACER
time.sleep(60)
)py")
                                         .string());
  const std::string path = folder.path().string() + ":/usr/bin:/bin";
  const GpuList list = find_gpus(environment_of({{"PATH", path}}), 3s);
  CHECK(list.why_none == "nvidia-smi does not answer");
  std::ifstream in(folder.path() / "pid");
  pid_t pid = 0;
  REQUIRE(in >> pid);
  // Still there: whoever waits for it waits until it is let go.
  CHECK(::kill(pid, 0) == 0);
  folder.write("let_go", "");
  // What lingers is reaped when nvidia-smi is asked the next time.
  testing::run_command("chmod +x " + folder.write("nvidia-smi", "#!/bin/sh\n").string());
  for (int tries = 0; tries < 500 && ::kill(pid, 0) == 0; ++tries) {
    find_gpus(environment_of({{"PATH", path}}), 5s);
  }
  CHECK(::kill(pid, 0) != 0);
}
