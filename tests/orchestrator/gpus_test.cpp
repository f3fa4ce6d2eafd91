#include "orchestrator/host/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
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

const GpuKind& kind_of(const std::string& name) {
  return *std::find_if(gpu_kinds().begin(), gpu_kinds().end(),
                       [&](const GpuKind& kind) { return kind.name == name; });
}

// A tool's answers: a shell script for each first argument.
using Tool = std::map<std::string, std::string>;

std::string print(const std::string& text) { return "/bin/cat <<'EOF'\n" + text + "EOF\n"; }

// A folder for PATH, with scripted tools in it.
class Tools {
 public:
  void add(const std::string& program, const Tool& tool) const {
    std::string script = "#!/bin/sh\ncase $1 in\n";
    for (const auto& [argument, does] : tool) script += argument + ")\n" + does + ";;\n";
    script += "*) echo \"unexpected: $*\"; exit 66;;\nesac\n";
    testing::run_command("chmod +x " + folder_.write(program, script).string());
  }
  std::string path() const { return folder_.path().string(); }

 private:
  testing::TempDir folder_;
};

constexpr const char* kList = "--query-gpu=index*";
constexpr const char* kModes = "--query-gpu=uuid*";
const std::string kUndivided = print(
    "GPU-8f6ed6a5-1111-2222-3333-444444444444, [N/A]\n"
    "GPU-9a0b1c2d-1111-2222-3333-444444444444, Disabled\n");

GpuList nvidia(const std::string& list, const std::string& modes = kUndivided) {
  const Tools tools;
  tools.add("nvidia-smi", {{kList, list}, {kModes, modes}});
  return find_gpus(kind_of("cuda"), environment_of({{"PATH", tools.path()}}),
                   std::chrono::seconds(5));
}

// Two A100 GPUs as nvidia-smi of driver 535 prints them: the first is divided into slices, the
// second is whole.
const Tool kDivided = {
    {kList, print("0, GPU-aa, 40960, [N/A]\n1, GPU-bb, 40960, 12\n")},
    {kModes, print("GPU-aa, Enabled\nGPU-bb, Disabled\n")},
    {"-L", print("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)\n"
                 "  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)\n"
                 "  MIG 1g.5gb      Device  1: (UUID: MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d)\n"
                 "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bb)\n")},
    {"-q", print("<nvidia_smi_log>\n\t<gpu id=\"00000000:3B:00.0\">\n"
                 "\t\t<mig_devices>\n\t\t\t<mig_device>\n\t\t\t\t<index>0</index>\n"
                 "\t\t\t\t<gpu_instance_id>2</gpu_instance_id>\n\t\t\t\t<fb_memory_usage>\n"
                 "\t\t\t\t\t<total>19968 MiB</total>\n\t\t\t\t\t<reserved>0 MiB</reserved>\n"
                 "\t\t\t\t\t<used>25 MiB</used>\n\t\t\t\t\t<free>19943 MiB</free>\n"
                 "\t\t\t\t</fb_memory_usage>\n\t\t\t\t<bar1_memory_usage>\n"
                 "\t\t\t\t\t<total>32767 MiB</total>\n\t\t\t\t</bar1_memory_usage>\n"
                 "\t\t\t</mig_device>\n\t\t\t<mig_device>\n\t\t\t\t<index>1</index>\n"
                 "\t\t\t\t<fb_memory_usage>\n\t\t\t\t\t<total>4864 MiB</total>\n"
                 "\t\t\t\t\t<used>3 MiB</used>\n\t\t\t\t</fb_memory_usage>\n"
                 "\t\t\t</mig_device>\n\t\t</mig_devices>\n\t\t<uuid>GPU-aa</uuid>\n"
                 "\t\t<fb_memory_usage>\n\t\t\t<total>40960 MiB</total>\n"
                 "\t\t</fb_memory_usage>\n\t</gpu>\n\t<gpu id=\"00000000:86:00.0\">\n"
                 "\t\t<uuid>GPU-bb</uuid>\n\t</gpu>\n</nvidia_smi_log>\n")}};

std::string text(const GpuList& list) {
  std::string all;
  for (const Gpu& gpu : list.gpus) {
    all += fmt::format("{}{} {} {}/{}", all.empty() ? "" : "; ", gpu.name(), gpu.uuid, gpu.used_mib,
                       gpu.total_mib);
  }
  return all;
}

}  // namespace

TEST_CASE("Each answer of nvidia-smi decides what --device auto uses", "[orchestrator]") {
  struct Row {
    std::string name;
    Tool tool;
    std::string uses;     // the GPUs; empty: CPU cores
    std::string refused;  // the reason not to start; empty: it starts
    std::string note;
  };
  const Tool both = {{kList, print("0, GPU-a, 81559, 4\n1, GPU-b, 81559, 70000\n")},
                     {kModes, print("GPU-a, Disabled\nGPU-b, [N/A]\n")}};
  const auto with = [&](const std::string& list) {
    return Tool{{kList, list}, {kModes, both.at(kModes)}};
  };
  const std::string a = "gpu-0 GPU-a 4/81559";
  for (
      const Row& row : {
          Row{"two GPUs", both, a + "; gpu-1 GPU-b 70000/81559", "", ""},
          Row{"none", with(print("No devices were found\n")), "", "", ""},
          Row{"no output", with(""), "", "", ""},
          Row{"exit code 9", with("echo 'NVIDIA-SMI has failed'; exit 9\n"), "",
              "nvidia-smi ended with exit code 9: NVIDIA-SMI has failed", ""},
          Row{"exit code 14 without a GPU", with("exit 14\n"), "",
              "nvidia-smi ended with exit code 14: it printed nothing", ""},
          Row{"exit code 14 with a GPU",
              with(print("0, GPU-a, 81559, 4\n") +
                   "echo 'WARNING: infoROM is corrupted'; exit 14\n"),
              a, "",
              "nvidia-smi ended with exit code 14; nvidia-smi printed 'WARNING: infoROM is "
              "corrupted', "
              "expected index, uuid, memory.total, memory.used"},
          Row{"killed", with("kill -9 $$\n"), "", "nvidia-smi was killed by signal 9 (Killed)", ""},
          Row{"silent", with("exec /bin/sleep 60\n"), "", "nvidia-smi gave no answer", ""},
          Row{"a stray line", with(print("warning: persistence mode\n0, GPU-a, 81559, 4\n")), a, "",
              "nvidia-smi printed 'warning: persistence mode', expected index, uuid, memory.total, "
              "memory.used"},
          Row{"strange lines alone", with(print("rubbish\n")), "",
              "nvidia-smi printed 'rubbish', expected index, uuid, memory.total, memory.used", ""},
          Row{"a lost GPU beside a healthy one",
              with(print("0, GPU-a, 81559, 4\n1, GPU-b, [GPU is lost], [GPU is lost]\n")), a, "",
              "GPU 1 (GPU-b) is not used: nvidia-smi reports its memory as '[GPU is lost]', '[GPU "
              "is lost]'"},
          Row{"a lost GPU alone", with(print("0, GPU-a, [GPU is lost], [GPU is lost]\n")), "",
              "GPU 0 (GPU-a) is not used: nvidia-smi reports its memory as '[GPU is lost]', '[GPU "
              "is lost]'",
              ""},
          Row{"unified memory", with(print("0, GPU-a, [N/A], [N/A]\n")), "gpu-0 GPU-a 0/0", "", ""},
          Row{"slices", kDivided,
              "gpu-0-mig-0 MIG-c7384736-a75d-5afc-978f-d2f1294409fd 25/19968; gpu-0-mig-1 "
              "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d 3/4864; gpu-1 GPU-bb 12/40960",
              "", ""},
          Row{"MIG without slices",
              {{kList, print("0, GPU-aa, 40960, 4\n")},
               {kModes, print("GPU-aa, Enabled\n")},
               {"-L", print("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)\n")},
               {"-q", ""}},
              "",
              "GPU 0 (GPU-aa) is not used: it is in MIG mode and has no slices (create some with "
              "nvidia-smi mig -cgi)",
              ""},
          Row{"slices of unknown memory",
              {{kList,
                print("0, GPU-aa, [Insufficient Permissions], [Insufficient Permissions]\n")},
               {kModes, kDivided.at(kModes)},
               {"-L", kDivided.at("-L")},
               {"-q", "exit 4\n"}},
              "gpu-0-mig-0 MIG-c7384736-a75d-5afc-978f-d2f1294409fd 0/0; gpu-0-mig-1 "
              "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d 0/0",
              "",
              "nvidia-smi ended with exit code 4: it printed nothing"},
          Row{"a driver that knows no MIG",
              {{kList, both.at(kList)}, {kModes, "echo 'not a valid field to query.'; exit 2\n"}},
              a + "; gpu-1 GPU-b 70000/81559",
              "",
              "nvidia-smi ended with exit code 2: not a valid field to query."},
      }) {
    INFO(row.name);
    const Tools tools;
    tools.add("nvidia-smi", row.tool);
    const bool slow = row.name == "silent";
    const GpuList list =
        find_gpus(kind_of("cuda"), environment_of({{"PATH", tools.path()}}),
                  slow ? std::chrono::milliseconds(200) : std::chrono::milliseconds(20'000));
    CHECK(text(list) == row.uses);
    CHECK(list.failed == !row.refused.empty());
    if (!row.refused.empty()) CHECK(list.why_none == row.refused);
    if (row.uses.empty() && row.refused.empty()) CHECK(list.why_none == "nvidia-smi lists no GPU");
    if (!row.uses.empty()) {
      CHECK(fmt::format("{}", fmt::join(list.notes, "; ")) == row.note);
    }
  }
}

TEST_CASE("A GPU that can be opened but not queried is a failure, not a machine without GPUs",
          "[orchestrator]") {
  const testing::TempDir devices;
  const auto environment = environment_of({{"PATH", "/nowhere"}});
  const auto found = [&](const std::string& kind) {
    return find_gpus(kind_of(kind), environment, std::chrono::seconds(1), devices.path());
  };
  devices.write("nvidiactl", "");
  CHECK_FALSE(found("cuda").failed);
  CHECK(found("cuda").why_none == "nvidia-smi is not on PATH");
  CHECK(found("rocm").why_none == "neither rocm-smi nor amd-smi is on PATH");
  devices.write("nvidia0", "");
  devices.write("kfd", "");
  CHECK(found("cuda").failed);
  CHECK(found("cuda").why_none ==
        "this machine has a GPU from NVIDIA, but nvidia-smi is not on PATH");
  CHECK(found("rocm").failed);
}

TEST_CASE("CUDA_VISIBLE_DEVICES chooses by number, by UUID and by slice", "[orchestrator]") {
  const GpuList all = nvidia(print(kOutput));
  REQUIRE(all.gpus.size() == 2);
  CHECK(only_visible(all, "1, 0").gpus.front().index == 1);
  CHECK(only_visible(all, "GPU-9a0b").gpus == std::vector<Gpu>{all.gpus[1]});
  CHECK(only_visible(all, "1,1").gpus.size() == 1);
  CHECK(only_visible(all, "").why_none == "CUDA_VISIBLE_DEVICES is ''");
  CHECK(only_visible(all, "0,-1,1").gpus.size() == 1);
  const std::string must =
      ", must be the number or UUID of a GPU, or the UUID of a slice (MIG-…), that nvidia-smi "
      "lists";
  CHECK_THROWS_WITH(only_visible(all, "0,7"), "CUDA_VISIBLE_DEVICES names '7'" + must);
  CHECK_THROWS_WITH(only_visible(all, "MIG-1"), "CUDA_VISIBLE_DEVICES names 'MIG-1'" + must);

  const Tools tools;
  tools.add("nvidia-smi", kDivided);
  const auto visible = [&](const std::string& variable) {
    std::string names;
    const GpuList list =
        find_gpus(kind_of("cuda"),
                  environment_of({{"PATH", tools.path()}, {"CUDA_VISIBLE_DEVICES", variable}}),
                  std::chrono::seconds(5));
    for (const Gpu& gpu : list.gpus) names += gpu.name() + " ";
    return names;
  };
  CHECK(visible("MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d") == "gpu-0-mig-1 ");
  CHECK(visible("MIG-a28a,MIG-c738") == "gpu-0-mig-1 gpu-0-mig-0 ");
  CHECK(visible("0") == "gpu-0-mig-0 gpu-0-mig-1 ");
  CHECK(visible("GPU-aa,1") == "gpu-0-mig-0 gpu-0-mig-1 gpu-1 ");
}

TEST_CASE("AMD GPUs are read as rocm-smi and amd-smi print them", "[orchestrator]") {
  const std::string rocm_smi =
      "WARNING: AMD GPU device(s) is/are in a low-power state.\n"
      "{\"card0\": {\"Unique ID\": \"0x719d230578348e8c\", \"VRAM Total Memory (B)\": "
      "\"68702699520\", \"VRAM Total Used Memory (B)\": \"11575296\"}, \"card10\": {\"Unique ID\": "
      "\"0x2\"}, \"card2\": {\"Unique ID\": \"N/A\", \"VRAM Total Memory (B)\": \"1048576\"}, "
      "\"system\": {\"Driver version\": \"6.10.5\"}}\n";
  const auto with = [](const Tools& tools, std::map<std::string, std::string> variables = {}) {
    variables["PATH"] = tools.path();
    return find_gpus(kind_of("rocm"), environment_of(variables), std::chrono::seconds(5));
  };
  const Tools rocm;
  rocm.add("rocm-smi", {{"--showuniqueid", print(rocm_smi)}});
  const GpuList all = with(rocm);
  CHECK(text(all) == "gpu-0 AMD-0x719d230578348e8c 11/65520; gpu-2 AMD-2 0/1; gpu-10 AMD-0x2 0/0");
  CHECK(all.gpus[0].kind == "rocm");
  CHECK(all.gpus[2].selector == "10");

  const Tools amd;
  for (const bool wrapped : {false, true}) {
    const std::string metrics =
        "[{\"gpu\": 1, \"mem_usage\": {\"total_vram\": {\"value\": 196592, \"unit\": \"MB\"}, "
        "\"used_vram\": {\"value\": 283, \"unit\": \"MB\"}}}]";
    amd.add("amd-smi",
            {{"list", print("[{\"gpu\": 0, \"bdf\": \"0000:0b:00.0\", \"uuid\": \"9eff74a1\"}, "
                            "{\"gpu\": 1, \"bdf\": \"0000:0c:00.0\"}]\n")},
             {"metric", print(wrapped ? "{\"gpu_data\": " + metrics + "}\n" : metrics + "\n")}});
    CHECK(text(with(amd)) == "gpu-0 AMD-9eff74a1 0/0; gpu-1 AMD-0000:0c:00.0 283/196592");
  }

  // HIP numbers the GPUs that ROCR_VISIBLE_DEVICES leaves.
  const auto selected = [&](const std::map<std::string, std::string>& variables) {
    std::string names;
    for (const Gpu& gpu : with(rocm, variables).gpus)
      names += gpu.name() + "=" + gpu.selector + " ";
    return names;
  };
  CHECK(selected({{"HIP_VISIBLE_DEVICES", "10,0"}}) == "gpu-10=10 gpu-0=0 ");
  CHECK(selected({{"ROCR_VISIBLE_DEVICES", "10,2"}}) == "gpu-10=0 gpu-2=1 ");
  CHECK(selected({{"ROCR_VISIBLE_DEVICES", "10,2"}, {"HIP_VISIBLE_DEVICES", "1"}}) == "gpu-2=1 ");
  CHECK(selected({{"HIP_VISIBLE_DEVICES", "-1"}}).empty());
  CHECK_THROWS_WITH(selected({{"HIP_VISIBLE_DEVICES", "3"}}),
                    "HIP_VISIBLE_DEVICES names '3', must be the number of an existing GPU");

  rocm.add("rocm-smi", {{"--showuniqueid", "echo 'ERROR: no driver'; exit 1\n"}});
  CHECK(with(rocm).failed);
  CHECK(with(rocm).why_none == "rocm-smi ended with exit code 1: ERROR: no driver");
}

TEST_CASE("An nvidia-smi that survives SIGKILL does not block petlab", "[orchestrator]") {
  using namespace std::chrono_literals;
  const testing::TempDir folder;
  // A traced process does not end before its tracer releases it, like a process stuck in the
  // driver.
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
  const GpuList list = find_gpus(kind_of("cuda"), environment_of({{"PATH", path}}), 3s);
  CHECK(list.why_none == "nvidia-smi gave no answer");
  std::ifstream in(folder.path() / "pid");
  pid_t pid = 0;
  REQUIRE(in >> pid);
  // The process still exists. Waiting for it would block until it is released.
  CHECK(::kill(pid, 0) == 0);
  folder.write("let_go", "");
  // The next call of nvidia-smi reaps it.
  testing::run_command("chmod +x " + folder.write("nvidia-smi", "#!/bin/sh\n").string());
  for (int tries = 0; tries < 500 && ::kill(pid, 0) == 0; ++tries) {
    find_gpus(kind_of("cuda"), environment_of({{"PATH", path}}), 5s);
  }
  CHECK(::kill(pid, 0) != 0);
}
