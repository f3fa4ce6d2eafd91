#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/child.h"
#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// A GPU as nvidia-smi lists it. Memory is in MiB, of all processes of all users.
struct Gpu {
  std::int64_t index = 0;
  std::string uuid;  // "GPU-8f6ed6a5-…"
  std::int64_t total_mib = 0;
  std::int64_t used_mib = 0;
  bool operator==(const Gpu&) const = default;
};

/// The GPUs of this machine.
struct GpuList {
  std::vector<Gpu> gpus;
  /// What is odd without being an error: a GPU that tells no memory, an nvidia-smi that fails.
  std::vector<std::string> notes;
  /// Why there is no GPU; empty where there is one.
  std::string why_none;
  bool failed = false;  // nvidia-smi is there, but did not answer as it should
};

/// Reads the output of `nvidia-smi --query-gpu=index,uuid,memory.total,memory.used
/// --format=csv,noheader,nounits`. A GPU whose memory is no number ("[N/A]", "[GPU is lost]") is
/// left out with a note. Throws Error for a line that is not of that form.
GpuList parse_gpus(const std::string& output);

/// Leaves the GPUs that CUDA_VISIBLE_DEVICES names, in its order: numbers as nvidia-smi counts, or
/// UUIDs or their beginnings; empty or -1: none. Throws std::invalid_argument for what is no GPU.
GpuList only_visible(GpuList list, const std::string& visible_devices);

/// How long nvidia-smi may take: it takes seconds where a driver wakes up.
inline constexpr std::chrono::seconds kGpuTimeout{30};

/// Asks the nvidia-smi on PATH, once; the environment's CUDA_VISIBLE_DEVICES counts. No nvidia-smi,
/// or one that fails or does not answer within `timeout`: no GPUs, and why. One that does not
/// answer is killed, and not waited for.
GpuList find_gpus(const sweeps::Environment& environment, std::chrono::milliseconds timeout);

/// Asks nvidia-smi again while a loop goes on; it may take seconds. What it asks when it goes is
/// answered to nobody.
class GpuQuery {
 public:
  /// Throws Error where there is no nvidia-smi on PATH.
  GpuQuery(boost::asio::io_context& loop, const sweeps::Environment& environment);
  GpuQuery(const GpuQuery&) = delete;
  GpuQuery& operator=(const GpuQuery&) = delete;

  bool under_way() const { return under_way_; }
  /// Calls `done` from the loop; a list without GPUs and `failed` where it failed or took longer
  /// than `timeout`. Not while another is under way.
  void ask(std::chrono::milliseconds timeout, std::function<void(GpuList)> done);

 private:
  std::filesystem::path program_;
  base::Children children_;
  bool under_way_ = false;
};

}  // namespace petlab::orchestrator
