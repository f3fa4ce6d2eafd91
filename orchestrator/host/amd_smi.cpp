#include <fmt/format.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/shallow_json.h"
#include "orchestrator/host/gpu_tools.h"

namespace petlab::orchestrator {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

// Both tools print warnings before their JSON.
nlohmann::json json_in(const std::string& output) {
  const std::size_t begin = output.find_first_of("[{");
  return begin == std::string::npos ? nlohmann::json()
                                    : base::shallow_json_or_none(output.substr(begin));
}

// Reads a whole number, given as a JSON number or a string.
std::optional<std::int64_t> number_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return static_cast<std::int64_t>(found->get<double>());
  if (!found->is_string()) return std::nullopt;
  const std::string& text = found->get_ref<const std::string&>();
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string json_text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Gpu amd_gpu(std::int64_t index, const std::string& identity) {
  Gpu gpu;
  gpu.index = index;
  gpu.kind = "rocm";
  gpu.uuid = "AMD-" + (identity.empty() || identity == "N/A" ? std::to_string(index) : identity);
  gpu.selector = std::to_string(index);
  return gpu;
}

// Reads {"value": 65536, "unit": "MB"}; the tool's MB are MiB.
std::int64_t memory_of(const nlohmann::json& usage, const char* key) {
  const auto found = usage.find(key);
  return found == usage.end() || !found->is_object() ? 0 : number_of(*found, "value").value_or(0);
}

void note_unreadable(const char* tool, const std::string& output, GpuList& list) {
  const std::string line = output.substr(0, output.find('\n'));
  list.notes.push_back(fmt::format("{} printed '{}', expected JSON with GPUs", tool, line));
}

}  // namespace

std::optional<std::vector<std::string>> rocm_smi_question(const GpuTool::Answers& answers, bool) {
  if (!answers.empty()) return std::nullopt;
  return std::vector<std::string>{"--showuniqueid", "--showmeminfo", "vram", "--json"};
}

// The tool prints {"card0": {"Unique ID": "0x719d…", "VRAM Total Memory (B)": "68702699520", "VRAM
// Total Used Memory (B)": "11575296"}, …, "system": {…}}.
GpuList read_rocm_smi(const GpuTool::Answers& answers) {
  GpuList list;
  const nlohmann::json json = json_in(answers[0]);
  if (!json.is_object()) {
    note_unreadable("rocm-smi", answers[0], list);
    return list;
  }
  std::map<std::int64_t, Gpu> by_index;  // "card10" sorts before "card2"
  for (const auto& [name, card] : json.items()) {
    if (!name.starts_with("card") || !card.is_object()) continue;
    const std::optional<std::int64_t> index = number_of({{"n", name.substr(4)}}, "n");
    if (!index) continue;
    Gpu gpu = amd_gpu(*index, json_text(card, "Unique ID"));
    gpu.total_mib = number_of(card, "VRAM Total Memory (B)").value_or(0) / kMib;
    gpu.used_mib = number_of(card, "VRAM Total Used Memory (B)").value_or(0) / kMib;
    by_index.emplace(*index, std::move(gpu));
  }
  for (auto& [index, gpu] : by_index) list.gpus.push_back(std::move(gpu));
  return list;
}

std::optional<std::vector<std::string>> amd_smi_question(const GpuTool::Answers& answers, bool) {
  if (answers.empty()) return std::vector<std::string>{"list", "--json"};
  if (answers.size() == 1) return std::vector<std::string>{"metric", "--mem-usage", "--json"};
  return std::nullopt;
}

// The tool prints [{"gpu": 0, "bdf": "0000:0b:00.0", "uuid": "9eff74a1-…"}, …], and for memory
// [{"gpu": 0, "mem_usage": {"total_vram": {"value": 65520, "unit": "MB"}, "used_vram": {…}}}, …].
// Newer versions wrap the list in {"gpu_data": […]}.
GpuList read_amd_smi(const GpuTool::Answers& answers) {
  GpuList list;
  const auto rows_in = [](const std::string& output) {
    nlohmann::json json = json_in(output);
    return json.is_object() && json.contains("gpu_data") ? json["gpu_data"] : json;
  };
  const nlohmann::json rows = rows_in(answers[0]);
  if (!rows.is_array()) {
    note_unreadable("amd-smi", answers[0], list);
    return list;
  }
  for (const nlohmann::json& row : rows) {
    const std::optional<std::int64_t> index =
        row.is_object() ? number_of(row, "gpu") : std::nullopt;
    if (!index) continue;
    const std::string uuid = json_text(row, "uuid");
    list.gpus.push_back(amd_gpu(*index, uuid.empty() ? json_text(row, "bdf") : uuid));
  }
  if (answers.size() < 2) return list;
  const nlohmann::json metrics = rows_in(answers[1]);
  for (Gpu& gpu : list.gpus) {
    for (const nlohmann::json& row : metrics) {
      if (!row.is_object() || number_of(row, "gpu") != gpu.index) continue;
      const auto usage = row.find("mem_usage");
      if (usage == row.end() || !usage->is_object()) continue;
      gpu.total_mib = memory_of(*usage, "total_vram");
      gpu.used_mib = memory_of(*usage, "used_vram");
    }
  }
  return list;
}

}  // namespace petlab::orchestrator
