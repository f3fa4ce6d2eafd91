#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// A GPU, or a slice of one (MIG), as its vendor's tool lists it. Memory is in MiB, of all
/// processes of all users.
struct Gpu {
  std::int64_t index = 0;
  std::string uuid;  // "GPU-8f6ed6a5-…", "MIG-c7384736-…", "AMD-0x719d…": keys its locks
  std::int64_t total_mib = 0;  // 0: not known, as where it shares the machine's memory
  std::int64_t used_mib = 0;
  std::string kind = "cuda";  // "cuda", "rocm": as in trial.json
  std::int64_t slice = -1;    // number of the slice within the GPU; -1: the whole GPU
  std::string parent = {};    // UUID of the GPU whose slice it is
  std::string selector = {};  // what makes it the only visible GPU; empty: the UUID
  bool operator==(const Gpu&) const = default;

  /// "gpu-3", "gpu-3-mig-1".
  std::string name() const;
};

struct GpuTool;

/// The GPUs of one kind on this machine.
struct GpuList {
  std::vector<Gpu> gpus;
  /// What is odd without being an error: a lost GPU, a line that is no GPU, an exit code.
  std::vector<std::string> notes;
  /// Why there is no GPU; empty where there is one.
  std::string why_none;
  /// There are GPUs, or a tool for them, but no answer about any of them.
  bool failed = false;
};

/// One kind of GPUs: what workers call it, and the variables that select devices for a process.
struct GpuKind {
  std::string name;       // "cuda", "rocm"
  std::string vendor;     // "NVIDIA", "AMD"
  std::string variable;   // selects a worker's GPU
  std::string hidden_by;  // the variable's value that hides all
};
/// In the order in which they are looked for.
const std::vector<GpuKind>& gpu_kinds();

/// How long a GPU tool may take for an answer: it takes seconds where a driver wakes up.
inline constexpr std::chrono::seconds kGpuTimeout{30};

/// Asks the tool for this kind on PATH; variables of the environment that select devices count, and
/// one that names no GPU throws std::invalid_argument. `failed`: the tool fails, or does not answer
/// within `timeout` (it is killed, and not waited for); or it is missing, while a process may open
/// a GPU of this kind in `devices`.
GpuList find_gpus(const GpuKind& kind, const sweeps::Environment& environment,
                  std::chrono::milliseconds timeout, const std::filesystem::path& devices = "/dev");

/// Leaves the GPUs that CUDA_VISIBLE_DEVICES names, in its order: numbers as nvidia-smi counts, or
/// UUIDs of GPUs or slices, or their beginnings; empty or -1: none. A GPU that is divided stands
/// for its slices. Throws std::invalid_argument for anything else.
GpuList only_visible(GpuList list, const std::string& visible_devices);

/// Asks the tool of a kind again while a loop goes on; it may take seconds. What it asks when it
/// goes is answered to nobody.
class GpuQuery {
 public:
  /// Throws Error where there is no tool for the GPUs on PATH.
  GpuQuery(boost::asio::io_context& loop, const sweeps::Environment& environment,
           const std::vector<Gpu>& gpus);
  GpuQuery(const GpuQuery&) = delete;
  GpuQuery& operator=(const GpuQuery&) = delete;

  bool under_way() const { return under_way_; }
  /// Calls `done` from the loop; a list without GPUs and `failed` where there is no answer about
  /// any GPU within `timeout`. Not while another is under way.
  void ask(std::chrono::milliseconds timeout, std::function<void(GpuList)> done);

  struct Interview;

 private:
  void ask_next(std::chrono::milliseconds timeout, std::shared_ptr<Interview> interview,
                std::function<void(GpuList)> done);

  const GpuTool* tool_ = nullptr;
  std::filesystem::path program_;
  bool slices_ = false;
  base::Children children_;
  bool under_way_ = false;
};

}  // namespace petlab::orchestrator
