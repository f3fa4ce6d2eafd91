#include "orchestrator/host/gpus.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/programs.h"
#include "base/trimmed.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/gpu_tools.h"

namespace petlab::orchestrator {
namespace {

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.emplace_back(base::trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return names;
}

std::optional<std::int64_t> index_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string first_line(const base::ChildAnswer& answer) {
  const std::string_view text =
      base::trimmed(answer.output.empty() ? answer.errors : answer.output);
  return text.empty() ? "it printed nothing" : std::string(text.substr(0, text.find('\n')));
}

const GpuTool* tool_on_path(const std::string& kind, const sweeps::Environment& environment,
                            std::filesystem::path& program) {
  for (const GpuTool& tool : gpu_tools()) {
    if (tool.kind != kind) continue;
    program = base::find_program(tool.program, environment("PATH").value_or(""));
    if (!program.empty()) return &tool;
  }
  return nullptr;
}

std::string tools_of(const std::string& kind) {
  std::string names;
  for (const GpuTool& tool : gpu_tools()) {
    if (tool.kind == kind) names += (names.empty() ? "" : " nor ") + tool.program;
  }
  return (names.find(" nor ") == std::string::npos ? "" : "neither ") + names;
}

// True if this process can open the device file of such a GPU, which needs no tool.
bool may_open_one(const std::string& kind, const std::filesystem::path& devices) {
  for (const std::filesystem::path& file : base::entries_of(devices)) {
    const std::string name = file.filename().string();
    const bool gpu = kind == "rocm" ? name == "kfd"
                                    : name.starts_with("nvidia") && name.size() > 6 &&
                                          name.find_first_not_of("0123456789", 6) == name.npos;
    if (gpu && base::FileDescriptor(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK))) {
      return true;
    }
  }
  return false;
}

}  // namespace

const std::vector<GpuKind>& gpu_kinds() {
  static const std::vector<GpuKind> kinds = {
      {"cuda", "NVIDIA", "CUDA_VISIBLE_DEVICES", ""},
      {"rocm", "AMD", "HIP_VISIBLE_DEVICES", "-1"},
  };
  return kinds;
}

const std::vector<GpuTool>& gpu_tools() {
  static const std::vector<GpuTool> tools = {
      {"nvidia-smi", "cuda", nvidia_smi_question, read_nvidia_smi},
      {"rocm-smi", "rocm", rocm_smi_question, read_rocm_smi},
      {"amd-smi", "rocm", amd_smi_question, read_amd_smi},
  };
  return tools;
}

std::string Gpu::name() const {
  return slice < 0 ? fmt::format("gpu-{}", index) : fmt::format("gpu-{}-mig-{}", index, slice);
}

// The questions to one tool and its answers so far.
struct GpuQuery::Interview {
  explicit Interview(const GpuTool& gpu_tool, bool slices)
      : tool(gpu_tool), may_have_slices(slices) {}

  // Returns std::nullopt if no further question is useful.
  std::optional<std::vector<std::string>> next_question() const {
    if (cut_short || (answers.size() == 1 && tool.read(answers).gpus.empty())) return std::nullopt;
    return tool.question(answers, may_have_slices);
  }

  void take(const base::ChildAnswer& answer) {
    using Ending = base::ChildAnswer::Ending;
    answers.push_back(answer.output);
    cut_short = answer.ending != Ending::exited;
    if (answer.ending == Ending::exited && answer.exit_code == 0) return;
    const std::string what = answer.ending == Ending::timed_out ? "gave no answer" : answer.problem;
    problems.push_back(fmt::format("{} {}", tool.program, what));
    // If the answer lists GPUs, the tool's parser has noted its other lines already.
    const bool has_gpus = answers.size() == 1 && !tool.read(answers).gpus.empty();
    if (!cut_short && !has_gpus) problems.back() += ": " + first_line(answer);
  }

  GpuList result() const {
    GpuList list = tool.read(answers);
    list.notes.insert(list.notes.begin(), problems.begin(), problems.end());
    if (!list.gpus.empty()) return list;
    // The tool answered that there is no GPU.
    const bool none = problems.empty() && (list.notes.empty() || says_none());
    list.failed = !none;
    list.why_none = none ? fmt::format("{} lists no GPU", tool.program) : list.notes.front();
    if (none) list.notes.clear();
    return list;
  }

  const GpuTool& tool;
  const bool may_have_slices;
  GpuTool::Answers answers;
  std::vector<std::string> problems;
  bool cut_short = false;

 private:
  bool says_none() const { return base::trimmed(answers.front()) == "No devices were found"; }
};

namespace {

base::ChildCommand command_of(const std::filesystem::path& program,
                              std::vector<std::string> arguments,
                              std::chrono::milliseconds timeout) {
  base::ChildCommand command;
  command.program = program.string();
  command.arguments = std::move(arguments);
  command.time_limit = timeout;
  command.output_limit = std::size_t{16} << 20;  // a page of XML for each of many GPUs
  return command;
}

// Keeps the GPUs that `variable` selects. HIP renumbers the GPUs left by ROCR_VISIBLE_DEVICES from
// 0.
GpuList only_visible_to_rocm(GpuList list, const std::string& variable, const std::string& text) {
  GpuList visible = std::move(list);
  std::vector<Gpu> all = std::exchange(visible.gpus, {});
  const std::string wanted(base::trimmed(text));
  for (const std::string& name : names_in(wanted)) {
    if (wanted.empty() || name == "-1") break;
    const std::optional<std::int64_t> index = index_in(name);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Gpu& gpu) {
      return index && gpu.selector == std::to_string(*index);
    });
    if (found == all.end()) {
      throw std::invalid_argument(
          fmt::format("{} names '{}', must be the number of an existing GPU", variable, name));
    }
    if (std::find(visible.gpus.begin(), visible.gpus.end(), *found) == visible.gpus.end()) {
      visible.gpus.push_back(*found);
    }
  }
  if (visible.gpus.empty()) visible.why_none = fmt::format("{} is '{}'", variable, text);
  return visible;
}

GpuList visible_in(const sweeps::Environment& environment, const GpuKind& kind, GpuList list) {
  if (list.gpus.empty()) return list;
  if (kind.name == "cuda") {
    const std::optional<std::string> visible = environment(kind.variable);
    return visible ? only_visible(std::move(list), *visible) : list;
  }
  const std::optional<std::string> rocr = environment("ROCR_VISIBLE_DEVICES");
  if (rocr) {
    list = only_visible_to_rocm(std::move(list), "ROCR_VISIBLE_DEVICES", *rocr);
    for (std::size_t at = 0; at < list.gpus.size(); ++at) {
      list.gpus[at].selector = std::to_string(at);
    }
  }
  const std::optional<std::string> hip = environment(kind.variable);
  if (!hip || list.gpus.empty()) return list;
  return only_visible_to_rocm(std::move(list), kind.variable, *hip);
}

}  // namespace

GpuList only_visible(GpuList list, const std::string& visible_devices) {
  GpuList visible;
  visible.notes = list.notes;
  const std::string wanted(base::trimmed(visible_devices));
  for (const std::string& name : names_in(wanted)) {
    if (wanted.empty() || name == "-1") break;  // CUDA ignores -1 and all names after it
    const std::optional<std::int64_t> index = index_in(name);
    bool any = false;
    for (const Gpu& gpu : list.gpus) {
      const bool matches =
          index ? gpu.index == *index
                : name.size() > 4 && (gpu.uuid.starts_with(name) || gpu.parent.starts_with(name));
      any = any || matches;
      if (matches &&
          std::find(visible.gpus.begin(), visible.gpus.end(), gpu) == visible.gpus.end()) {
        visible.gpus.push_back(gpu);
      }
    }
    if (!any) {
      throw std::invalid_argument(fmt::format(
          "CUDA_VISIBLE_DEVICES names '{}', must be the number or UUID of a GPU, or the UUID of a "
          "slice (MIG-…), that nvidia-smi lists",
          name));
    }
  }
  if (visible.gpus.empty()) {
    visible.why_none = fmt::format("CUDA_VISIBLE_DEVICES is '{}'", visible_devices);
  }
  return visible;
}

GpuQuery::GpuQuery(boost::asio::io_context& loop, const sweeps::Environment& environment,
                   const std::vector<Gpu>& gpus)
    : children_(loop) {
  tool_ = tool_on_path(gpus.front().kind, environment, program_);
  if (tool_ == nullptr) {
    throw Error(fmt::format("{} is on PATH", tools_of(gpus.front().kind)));
  }
  slices_ = std::any_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.slice >= 0; });
}

void GpuQuery::ask(std::chrono::milliseconds timeout, std::function<void(GpuList)> done) {
  under_way_ = true;
  ask_next(timeout, std::make_shared<Interview>(*tool_, slices_), std::move(done));
}

void GpuQuery::ask_next(std::chrono::milliseconds timeout, std::shared_ptr<Interview> interview,
                        std::function<void(GpuList)> done) {
  std::optional<std::vector<std::string>> question = interview->next_question();
  if (!question) {
    under_way_ = false;
    done(interview->result());
    return;
  }
  children_.run(command_of(program_, std::move(*question), timeout),
                [this, timeout, interview, done = std::move(done)](base::ChildAnswer answer) {
                  interview->take(answer);
                  ask_next(timeout, interview, done);
                });
}

GpuList find_gpus(const GpuKind& kind, const sweeps::Environment& environment,
                  std::chrono::milliseconds timeout, const std::filesystem::path& devices) {
  std::filesystem::path program;
  const GpuTool* tool = tool_on_path(kind.name, environment, program);
  if (tool == nullptr) {
    GpuList list;
    const std::string tools = tools_of(kind.name);
    const bool neither = tools.starts_with("neither ");
    list.why_none = fmt::format("{} is {}on PATH", tools, neither ? "" : "not ");
    list.failed = may_open_one(kind.name, devices);
    if (list.failed)
      list.why_none =
          fmt::format("this machine has a GPU from {}, but {}", kind.vendor, list.why_none);
    return list;
  }
  GpuQuery::Interview interview(*tool, true);
  while (auto question = interview.next_question()) {
    interview.take(base::run_child(command_of(program, std::move(*question), timeout)));
  }
  return visible_in(environment, kind, interview.result());
}

}  // namespace petlab::orchestrator
