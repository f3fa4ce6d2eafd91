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

/// A GPU or a slice of one (MIG), as listed by its vendor's tool. Memory is in MiB and counts all
/// processes of all users.
struct Gpu {
  std::int64_t index = 0;
  std::string uuid;  // "GPU-8f6ed6a5-…", "MIG-c7384736-…", "AMD-0x719d…": names its locks
  std::int64_t total_mib = 0;  // 0: unknown, for example if it shares the machine's memory
  std::int64_t used_mib = 0;
  std::string kind = "cuda";  // "cuda", "rocm": as in trial.json
  std::int64_t slice = -1;    // number of the slice within the GPU; -1: the whole GPU
  std::string parent = {};    // UUID of the GPU that the slice is part of
  std::string selector = {};  // value of GpuKind::variable that selects it; empty: the UUID
  bool operator==(const Gpu&) const = default;

  /// "gpu-3", "gpu-3-mig-1".
  std::string name() const;
};

struct GpuTool;

/// The GPUs of one kind on this machine.
struct GpuList {
  std::vector<Gpu> gpus;
  /// Oddities that are not errors: a lost GPU, an unreadable line, an exit code.
  std::vector<std::string> notes;
  /// Why there is no GPU; empty if there is one.
  std::string why_none;
  /// True if this machine has GPUs, or a tool for them, but none could be listed.
  bool failed = false;
};

/// One kind of GPU: its name for workers, and the variable that selects a process's devices.
struct GpuKind {
  std::string name;       // "cuda", "rocm"
  std::string vendor;     // "NVIDIA", "AMD"
  std::string variable;   // selects a worker's GPU
  std::string hidden_by;  // value of `variable` that hides all GPUs
};
/// All kinds, in the order in which petlab looks for them.
const std::vector<GpuKind>& gpu_kinds();

/// Time limit for an answer of a GPU tool. It takes seconds if the driver has to wake up.
inline constexpr std::chrono::seconds kGpuTimeout{30};

/// Lists the GPUs of one kind with its tool on PATH, restricted by the environment's variables that
/// select devices. Throws std::invalid_argument if such a variable names a missing GPU. Sets
/// `failed` if the tool fails or does not answer within `timeout` (it is then killed and not waited
/// for), and if it is missing although this process can open a GPU of this kind in `devices`.
GpuList find_gpus(const GpuKind& kind, const sweeps::Environment& environment,
                  std::chrono::milliseconds timeout, const std::filesystem::path& devices = "/dev");

/// Keeps the GPUs that CUDA_VISIBLE_DEVICES names, in its order: numbers as in nvidia-smi, UUIDs of
/// GPUs or slices, or prefixes of UUIDs. An empty value or -1 selects none. The name of a divided
/// GPU selects all of its slices. Throws std::invalid_argument for any other name.
GpuList only_visible(GpuList list, const std::string& visible_devices);

/// Queries a GPU tool again from a running event loop, since an answer may take seconds. The
/// destructor drops a pending query without calling `done`.
class GpuQuery {
 public:
  /// Throws Error if no tool for these GPUs is on PATH.
  GpuQuery(boost::asio::io_context& loop, const sweeps::Environment& environment,
           const std::vector<Gpu>& gpus);
  GpuQuery(const GpuQuery&) = delete;
  GpuQuery& operator=(const GpuQuery&) = delete;

  bool under_way() const { return under_way_; }
  /// Calls `done` from the loop. If no GPU can be listed, the list is empty and `failed` is set.
  /// `timeout` applies to each answer of the tool. Must not be called while a query is under way.
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
