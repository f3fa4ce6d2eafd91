#include "orchestrator/host/gpus.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <charconv>
#include <stdexcept>

#include "base/programs.h"
#include "base/trimmed.h"
#include "orchestrator/host/error.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

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

// Killed, and not gone yet: one that the driver holds (state D) ends when that lets it go.
std::vector<pid_t>& lingering() {
  static std::vector<pid_t> pids;
  return pids;
}

// False where it is gone already.
bool end_child(pid_t pid) {
  return pid > 0 && ::waitpid(pid, nullptr, WNOHANG) == 0 && ::kill(pid, SIGKILL) == 0;
}

void reap_lingering() {
  std::erase_if(lingering(), [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace

struct GpuQuery::Impl {
  // One question. Its handlers own it, so that it outlives what they read into.
  struct Asked {
    explicit Asked(asio::io_context& loop) : output(loop), child(loop.get_executor()) {}
    // The child's own destructor would wait for its end.
    ~Asked() {
      const pid_t pid = child.id();
      child.detach();
      if (end_child(pid)) lingering().push_back(pid);
    }
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;
    asio::readable_pipe output;
    process::process child;
    std::string text;
    int code = -1;
    int open = 2;  // of output and child
  };

  Impl(asio::io_context& its_loop, std::filesystem::path its_program)
      : loop(its_loop), program(std::move(its_program)), timer(its_loop) {}

  void answer(GpuList list) {
    timer.cancel();
    boost::system::error_code ignored;
    asked->output.close(ignored);
    asked.reset();
    std::exchange(done, nullptr)(std::move(list));
  }

  void fail(const std::string& problem) {
    GpuList list;
    list.failed = true;
    list.why_none = problem;
    list.notes.push_back(problem);
    answer(std::move(list));
  }

  void part_over(const std::shared_ptr<Asked>& which) {
    if (--which->open > 0 || which != asked) return;
    if (which->code != 0) {
      fail(fmt::format("{} failed: {}", kProgram, first_line(which->text)));
      return;
    }
    try {
      answer(parse_gpus(which->text));
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  asio::io_context& loop;
  std::filesystem::path program;
  asio::steady_timer timer;
  std::shared_ptr<Asked> asked;
  std::function<void(GpuList)> done;
};

GpuQuery::GpuQuery(asio::io_context& loop, const sweeps::Environment& environment) {
  const std::optional<std::filesystem::path> found = program(environment);
  if (!found) throw Error(fmt::format("{} is not on PATH", kProgram));
  impl_ = std::make_shared<Impl>(loop, *found);
}
GpuQuery::~GpuQuery() {
  if (!impl_->asked) return;
  boost::system::error_code ignored;
  end_child(impl_->asked->child.id());
  impl_->asked->output.close(ignored);
}

bool GpuQuery::under_way() const { return impl_->asked != nullptr; }

void GpuQuery::ask(std::chrono::milliseconds timeout, std::function<void(GpuList)> done) {
  reap_lingering();
  Impl& impl = *impl_;
  impl.done = std::move(done);
  const auto asked = impl.asked = std::make_shared<Impl::Asked>(impl.loop);
  const std::weak_ptr<Impl> alive = impl_;
  try {
    asked->child =
        process::process(impl.loop.get_executor(), process::filesystem::path(impl.program.string()),
                         kArguments, process::process_stdio{nullptr, asked->output, nullptr});
  } catch (const std::exception& error) {
    asio::post(impl.loop, [alive, asked, what = std::string(error.what())] {
      const auto owner = alive.lock();
      if (owner && owner->asked == asked) {
        owner->fail(fmt::format("{}: cannot be started: {}", owner->program.string(), what));
      }
    });
    return;
  }
  asio::async_read(asked->output, asio::dynamic_buffer(asked->text, std::size_t{1} << 20),
                   [alive, asked](const boost::system::error_code&, std::size_t) {
                     if (const auto owner = alive.lock()) owner->part_over(asked);
                   });
  asked->child.async_wait([alive, asked](const boost::system::error_code& error, int code) {
    asked->code = error ? -1 : code;
    if (const auto owner = alive.lock()) owner->part_over(asked);
  });
  impl.timer.expires_after(timeout);
  impl.timer.async_wait([alive, asked](const boost::system::error_code& error) {
    const auto owner = alive.lock();
    if (error || !owner || owner->asked != asked) return;
    end_child(asked->child.id());
    owner->fail(fmt::format("{} does not answer", kProgram));
  });
}

GpuList find_gpus(const sweeps::Environment& environment, std::chrono::milliseconds timeout) {
  GpuList list;
  if (!program(environment)) {
    list.why_none = fmt::format("{} is not on PATH", kProgram);
    return list;
  }
  asio::io_context loop;
  GpuQuery query(loop, environment);
  query.ask(timeout, [&](GpuList found) { list = std::move(found); });
  while (query.under_way()) loop.run_one();
  const std::optional<std::string> visible = environment("CUDA_VISIBLE_DEVICES");
  return visible && !list.gpus.empty() ? only_visible(std::move(list), *visible) : list;
}

}  // namespace petlab::orchestrator
