#include "orchestrator/host/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "base/programs.h"
#include "base/trimmed.h"
#include "orchestrator/host/error.h"

namespace petlab::orchestrator {
namespace {

constexpr const char* kProgram = "nvidia-smi";
const std::vector<std::string> kArguments = {"--query-gpu=index,uuid,memory.total,memory.used",
                                             "--format=csv,noheader,nounits"};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(base::trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::filesystem::path> program(const sweeps::Environment& environment) {
  const std::string found = base::find_program(kProgram, environment("PATH").value_or(""));
  return found.empty() ? std::nullopt : std::optional<std::filesystem::path>(found);
}

std::string first_line(const std::string& text) {
  const std::string line(base::trimmed(std::string_view(text).substr(0, text.find('\n'))));
  return line.empty() ? "it printed nothing" : line;
}

}  // namespace

GpuList parse_gpus(const std::string& output) {
  GpuList list;
  for (const std::string& line : split(output, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line, ',');
    const std::optional<std::int64_t> index = whole(fields[0]);
    if (fields.size() != 4 || !index || !fields[1].starts_with("GPU-")) {
      throw Error(fmt::format("{} printed '{}', wanted index, uuid, memory.total, memory.used",
                              kProgram, line));
    }
    const std::optional<std::int64_t> total = whole(fields[2]);
    const std::optional<std::int64_t> used = whole(fields[3]);
    if (!total || *total == 0 || !used) {
      list.notes.push_back(fmt::format("GPU {} ({}) is left out: {} tells no memory: '{}', '{}'",
                                       *index, fields[1], kProgram, fields[2], fields[3]));
      continue;
    }
    list.gpus.push_back({*index, fields[1], *total, *used});
  }
  if (list.gpus.empty()) {
    list.why_none =
        list.notes.empty() ? fmt::format("{} lists no GPU", kProgram) : list.notes.front();
  }
  return list;
}

GpuList only_visible(GpuList list, const std::string& visible_devices) {
  GpuList visible;
  visible.notes = list.notes;
  const std::string wanted(base::trimmed(visible_devices));
  for (const std::string& name : split(wanted, ',')) {
    if (wanted.empty() || name == "-1") break;  // CUDA takes what stands before
    const auto is_it = [&](const Gpu& gpu) {
      const std::optional<std::int64_t> index = whole(name);
      return index ? gpu.index == *index : name.size() > 4 && gpu.uuid.starts_with(name);
    };
    const auto found = std::find_if(list.gpus.begin(), list.gpus.end(), is_it);
    if (found == list.gpus.end()) {
      throw std::invalid_argument(fmt::format(
          "CUDA_VISIBLE_DEVICES names '{}', must be the number or UUID of a GPU that {} lists{}",
          name, kProgram, name.starts_with("MIG-") ? " (parts of a GPU are not used)" : ""));
    }
    if (std::find(visible.gpus.begin(), visible.gpus.end(), *found) == visible.gpus.end()) {
      visible.gpus.push_back(*found);
    }
  }
  if (visible.gpus.empty()) {
    visible.why_none = fmt::format("CUDA_VISIBLE_DEVICES is '{}'", visible_devices);
  }
  return visible;
}

namespace {

base::ChildCommand question(const std::filesystem::path& program,
                            std::chrono::milliseconds timeout) {
  base::ChildCommand command;
  command.program = program.string();
  command.arguments = kArguments;
  command.time_limit = timeout;
  return command;
}

GpuList read_answer(const std::filesystem::path& program, const base::ChildAnswer& answer) {
  using Ending = base::ChildAnswer::Ending;
  GpuList list;
  switch (answer.ending) {
    case Ending::exited:
      if (answer.exit_code == 0) {
        try {
          return parse_gpus(answer.output);
        } catch (const Error& error) {
          list.why_none = error.what();
          break;
        }
      }
      list.why_none =
          fmt::format("{} failed: {}", kProgram,
                      first_line(answer.output.empty() ? answer.errors : answer.output));
      break;
    case Ending::timed_out:
      list.why_none = fmt::format("{} does not answer", kProgram);
      break;
    case Ending::not_started:
      list.why_none = fmt::format("{}: {}", program.string(), answer.problem);
      break;
    case Ending::signalled:
    case Ending::too_much:
    case Ending::unknown:
      list.why_none = fmt::format("{} {}", kProgram, answer.problem);
      break;
  }
  list.failed = true;
  list.notes.push_back(list.why_none);
  return list;
}

}  // namespace

GpuQuery::GpuQuery(boost::asio::io_context& loop, const sweeps::Environment& environment)
    : children_(loop) {
  const std::optional<std::filesystem::path> found = program(environment);
  if (!found) throw Error(fmt::format("{} is not on PATH", kProgram));
  program_ = *found;
}

void GpuQuery::ask(std::chrono::milliseconds timeout, std::function<void(GpuList)> done) {
  under_way_ = true;
  children_.run(question(program_, timeout),
                [this, done = std::move(done)](const base::ChildAnswer& answer) {
                  under_way_ = false;
                  done(read_answer(program_, answer));
                });
}

GpuList find_gpus(const sweeps::Environment& environment, std::chrono::milliseconds timeout) {
  const std::optional<std::filesystem::path> found = program(environment);
  if (!found) {
    GpuList list;
    list.why_none = fmt::format("{} is not on PATH", kProgram);
    return list;
  }
  GpuList list = read_answer(*found, base::run_child(question(*found, timeout)));
  const std::optional<std::string> visible = environment("CUDA_VISIBLE_DEVICES");
  return visible && !list.gpus.empty() ? only_visible(std::move(list), *visible) : list;
}

}  // namespace petlab::orchestrator
