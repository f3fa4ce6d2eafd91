#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "base/trimmed.h"
#include "orchestrator/host/gpu_tools.h"

namespace petlab::orchestrator {
namespace {

std::optional<std::int64_t> whole_in(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(base::trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

// True for the values of a GPU without memory of its own (GB10, Jetson), and of a GPU whose memory
// is hidden from a container that has a slice of it.
bool is_unreported(std::string_view memory) {
  return memory == "[N/A]" || memory == "N/A" || memory == "[Not Supported]" ||
         memory == "[Insufficient Permissions]";
}

// Parses lines such as "0, GPU-8f6ed6a5-…, 81559, 4".
void read_rows(const std::string& output, GpuList& list) {
  for (const std::string_view line : split_text(output, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string_view> fields = split_text(line, ',');
    const std::optional<std::int64_t> index = whole_in(fields[0]);
    if (fields.size() != 4 || !index || !fields[1].starts_with("GPU-")) {
      list.notes.push_back(fmt::format(
          "nvidia-smi printed '{}', expected index, uuid, memory.total, memory.used", line));
      continue;
    }
    Gpu gpu;
    gpu.index = *index;
    gpu.uuid = fields[1];
    const std::optional<std::int64_t> total = whole_in(fields[2]);
    const std::optional<std::int64_t> used = whole_in(fields[3]);
    if (total && *total > 0 && (used || is_unreported(fields[3]))) {
      gpu.total_mib = *total;
      gpu.used_mib = used.value_or(0);
    } else if (!is_unreported(fields[2])) {
      list.notes.push_back(
          fmt::format("GPU {} ({}) is not used: nvidia-smi reports its memory as "
                      "'{}', '{}'",
                      *index, fields[1], fields[2], fields[3]));
      continue;
    }
    list.gpus.push_back(std::move(gpu));
  }
}

// Returns the UUIDs of GPUs in MIG mode, from lines such as "GPU-5c89…, Enabled".
std::set<std::string> divided_in(const std::string& output) {
  std::set<std::string> divided;
  for (const std::string_view line : split_text(output, '\n')) {
    const std::vector<std::string_view> fields = split_text(line, ',');
    if (fields.size() == 2 && fields[1] == "Enabled") divided.emplace(fields[0]);
  }
  return divided;
}

// Parses "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89…)", and below it
// "  MIG 3g.20gb     Device  0: (UUID: MIG-c738…)".
std::map<std::string, std::vector<Gpu>> slices_in(const std::string& output) {
  std::map<std::string, std::vector<Gpu>> slices;  // by the UUID of their GPU
  std::string parent;
  for (const std::string_view line : split_text(output, '\n')) {
    const std::size_t begin = line.rfind("(UUID: ");
    if (begin == std::string_view::npos || !line.ends_with(')')) continue;
    const std::string uuid(line.substr(begin + 7, line.size() - begin - 8));
    if (line.starts_with("GPU ")) parent = uuid;
    const std::size_t device = line.find(" Device ");
    if (!line.starts_with("MIG ") || device == std::string_view::npos || parent.empty()) continue;
    const std::string_view number = base::trimmed(line.substr(device + 8, begin - device - 8));
    const std::optional<std::int64_t> slice = whole_in(number.substr(0, number.find(':')));
    if (!slice) continue;
    Gpu gpu;
    gpu.uuid = uuid;
    gpu.slice = *slice;
    gpu.parent = parent;
    slices[parent].push_back(std::move(gpu));
  }
  return slices;
}

struct SliceMemory {
  std::int64_t total_mib = 0;
  std::int64_t used_mib = 0;
};

// Parses the output of `nvidia-smi -q -x`, which has one element per line. The keys are the GPU's
// UUID and the slice's number.
std::map<std::pair<std::string, std::int64_t>, SliceMemory> slice_memory_in(
    const std::string& output) {
  std::map<std::pair<std::string, std::int64_t>, SliceMemory> all;
  std::map<std::int64_t, SliceMemory> of_gpu;
  std::string gpu;
  std::int64_t slice = -1;
  bool in_slice = false;
  bool in_memory = false;
  for (const std::string_view line : split_text(output, '\n')) {
    const auto value = [&](std::string_view name) -> std::optional<std::string_view> {
      const std::string open = fmt::format("<{}>", name);
      if (!line.starts_with(open)) return std::nullopt;
      return line.substr(open.size(), line.find("</") - open.size());
    };
    const auto mib = [&](std::string_view name, std::int64_t& into) {
      const auto text = value(name);
      if (text) into = whole_in(text->substr(0, text->find(' '))).value_or(0);
    };
    if (line.starts_with("<gpu ")) of_gpu.clear();
    if (line == "</gpu>") {
      for (const auto& [number, memory] : of_gpu) all[{gpu, number}] = memory;
    }
    if (line == "<mig_device>") in_slice = true;
    if (line == "</mig_device>") in_slice = false;
    if (line == "<fb_memory_usage>") in_memory = true;
    if (line == "</fb_memory_usage>") in_memory = false;
    if (in_slice && !in_memory) {
      if (const auto text = value("index")) slice = whole_in(*text).value_or(-1);
    }
    if (in_slice && in_memory) {
      mib("total", of_gpu[slice].total_mib);
      mib("used", of_gpu[slice].used_mib);
    }
    if (const auto uuid = value("uuid"); uuid && !in_slice) gpu = *uuid;
  }
  return all;
}

}  // namespace

std::optional<std::vector<std::string>> nvidia_smi_question(const GpuTool::Answers& answers,
                                                            bool slices) {
  if (answers.empty()) {
    return std::vector<std::string>{"--query-gpu=index,uuid,memory.total,memory.used",
                                    "--format=csv,noheader,nounits"};
  }
  if (!slices) return std::nullopt;
  if (answers.size() == 1) {
    return std::vector<std::string>{"--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"};
  }
  if (divided_in(answers[1]).empty()) return std::nullopt;
  if (answers.size() == 2) return std::vector<std::string>{"-L"};
  if (answers.size() == 3) return std::vector<std::string>{"-q", "-x"};
  return std::nullopt;
}

GpuList read_nvidia_smi(const GpuTool::Answers& answers) {
  GpuList list;
  read_rows(answers[0], list);
  if (answers.size() < 2) return list;
  const std::set<std::string> divided = divided_in(answers[1]);
  auto slices = slices_in(answers.size() > 2 ? answers[2] : "");
  const auto memory = slice_memory_in(answers.size() > 3 ? answers[3] : "");
  std::vector<Gpu> all;
  for (const Gpu& gpu : list.gpus) {
    if (!divided.contains(gpu.uuid)) {
      all.push_back(gpu);
      continue;
    }
    if (!slices.contains(gpu.uuid) && answers.size() > 2) {
      list.notes.push_back(
          fmt::format("GPU {} ({}) is not used: it is in MIG mode and has no slices (create some "
                      "with nvidia-smi mig -cgi)",
                      gpu.index, gpu.uuid));
    }
    for (Gpu slice : slices[gpu.uuid]) {
      slice.index = gpu.index;
      const auto known = memory.find({gpu.uuid, slice.slice});
      if (known != memory.end()) {
        slice.total_mib = known->second.total_mib;
        slice.used_mib = known->second.used_mib;
      }
      all.push_back(std::move(slice));
    }
  }
  list.gpus = std::move(all);
  return list;
}

}  // namespace petlab::orchestrator
