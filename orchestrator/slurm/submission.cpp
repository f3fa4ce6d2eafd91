#include "orchestrator/slurm/submission.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "orchestrator/launching/worker_log.h"

namespace petlab::orchestrator {
namespace {

constexpr std::string_view kPrefix = "petlab.";
constexpr const char* kTasks = "tasks";
// limit for tasks files and job logs
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// For any POSIX shell. With `set -C`, dash and bash create files with O_EXCL, which also works on
// NFS.
constexpr std::string_view kScript = R"sh(#!/bin/sh
# One task of a submission of petlab (docs/internals/orchestrator.md): runs the worker of one attempt.
tasks={tasks}
index=${{SLURM_ARRAY_TASK_ID:-0}}
job=${{SLURM_ARRAY_JOB_ID:+${{SLURM_ARRAY_JOB_ID}}_$index}}
job=${{job:-$SLURM_JOB_ID}}
attempt=$(sed -n "$((index + 1))p" "$tasks")
if [ -z "$attempt" ] || ! cd "$attempt"; then
  echo "petlab: line $((index + 1)) of $tasks names no folder that $(hostname) can see" >&2
  exit 1
fi
note() {{
  printf '{{"v":1,"type":"%s","time":%s,"job":"%s","restarts":%s,"host":"%s"%s}}\n' \
    "$1" "$(date +%s)" "$job" "${{SLURM_RESTART_COUNT:-0}}" "${{SLURMD_NODENAME:-$(hostname)}}" "$2"
}}
# The job that creates the file runs the attempt; a restarted or duplicate job does not.
if ! (set -C; note began >job.jsonl) 2>/dev/null; then
  [ -e job.jsonl ] && exit 0
  echo "petlab: $attempt/job.jsonl cannot be created on $(hostname)" >&2
  exit 1
fi
unset PETLAB_LOCK_FD PETLAB_WORKER
export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-{threads}}}"
# The worker gets Slurm's signals itself; the shell stays to note how it ended.
trap : TERM INT HUP
{worker} "$attempt" >>log.txt 2>&1 </dev/null
code=$?
[ -z "$(tail -c 1 job.jsonl)" ] || echo >>job.jsonl
note ended ",\"exit_code\":$code" >>job.jsonl
exit $code
)sh";

std::string tail_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  constexpr std::streamoff kBytes = 8192;
  in.seekg(0, std::ios::end);
  in.seekg(std::max<std::streamoff>(0, in.tellg() - kBytes));
  std::ostringstream content;
  content << in.rdbuf();
  WorkerLog log(0);
  log.append(std::move(content).str());
  return log.last_lines();
}

}  // namespace

std::filesystem::path submissions_folder(const std::filesystem::path& runs) {
  return runs / ".slurm";
}
std::filesystem::path submission_folder(const std::filesystem::path& runs, const std::string& id) {
  return submissions_folder(runs) / id;
}
std::string submission_id(const std::string& owner, std::int64_t number) {
  return fmt::format("{}{}.{}", kPrefix, owner, number);
}

void write_submission(const std::filesystem::path& runs, const Submission& submission,
                      const WorkerCommand& worker, int threads) {
  const std::filesystem::path folder = submission_folder(runs, submission.id);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  const std::filesystem::path tasks = folder / kTasks;
  std::string command = quoted(worker.program.string());
  for (const std::string& argument : worker.arguments) command += " " + quoted(argument);
  base::write_file_atomically(
      folder / "job.sh",
      fmt::format(fmt::runtime(kScript), fmt::arg("tasks", quoted(tasks.string())),
                  fmt::arg("worker", command), fmt::arg("threads", threads)));
  std::string lines;
  for (const std::filesystem::path& attempt : submission.attempts) lines += attempt.string() + "\n";
  // Written last: a submission with tasks is complete.
  base::write_file_atomically(tasks, lines);
}

std::map<std::filesystem::path, Submitted> submissions_of(const std::filesystem::path& runs,
                                                          const std::string& owner) {
  std::map<std::int64_t, std::string> ids;
  const std::string prefix = fmt::format("{}{}.", kPrefix, owner);
  for (const std::filesystem::path& entry : base::entries_of(submissions_folder(runs))) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(prefix)) continue;
    std::int64_t number = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) ids[number] = name;
  }
  std::map<std::filesystem::path, Submitted> found;
  for (const auto& [number, id] : ids) {
    std::istringstream in(
        base::read_file_if_any(submission_folder(runs, id) / kTasks, kMostBytes).value_or(""));
    std::int64_t task = 0;
    for (std::string line; std::getline(in, line); ++task) found[line] = {id, task};
  }
  return found;
}

std::map<std::string, std::string> submission_owners(const std::filesystem::path& runs) {
  std::map<std::string, std::string> owners;
  for (const std::filesystem::path& entry : base::entries_of(submissions_folder(runs))) {
    const std::string id = entry.filename().string();
    const std::size_t dot = id.rfind('.');
    if (!id.starts_with(kPrefix) || dot < kPrefix.size()) continue;
    owners[id] = id.substr(kPrefix.size(), dot - kPrefix.size());
  }
  return owners;
}

void remove_submission(const std::filesystem::path& runs, const std::string& id) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(submission_folder(runs, id), ignored);
}

std::optional<JobLog> read_job_log(const protocol::TrialDirectory& directory) {
  const std::optional<std::string> content =
      base::read_file_if_any(directory.job_log(), kMostBytes);
  if (!content) return std::nullopt;
  std::istringstream in(*content);
  JobLog log;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const nlohmann::json json = base::shallow_json_or_none(line);
    if (!json.is_object()) continue;
    const auto text = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const std::string type = text("type");
    if (type == "withdrawn") log.withdrawn = true;
    if (type == "began") {
      log.job = text("job");
      log.host = text("host");
    }
    const auto code = json.find("exit_code");
    if (type == "ended" && code != json.end() && code->is_number_integer()) {
      log.exit_code = code->get<int>();
    }
  }
  return log;
}

bool withdraw(const protocol::TrialDirectory& directory, double time) {
  const base::FileDescriptor file(
      ::open(directory.job_log().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) {
    if (errno == EEXIST) {
      const std::optional<JobLog> log = read_job_log(directory);
      // The file is empty if its creator died before writing a line.
      return log && log->job.empty();
    }
    throw Error(fmt::format("{}: cannot be created: {}", directory.job_log().string(),
                            std::strerror(errno)));
  }
  const std::string line =
      nlohmann::ordered_json{{"v", 1}, {"type", "withdrawn"}, {"time", time}}.dump() + "\n";
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Error(fmt::format("{}: cannot be written: {}", directory.job_log().string(),
                            std::strerror(errno)));
  }
  return true;
}

std::string job_last_lines(const protocol::TrialDirectory& directory,
                           const std::filesystem::path& runs, const std::string& submission,
                           std::int64_t task) {
  std::string lines = tail_of(directory.log());
  if (lines.empty() && !submission.empty()) {
    lines = tail_of(submission_folder(runs, submission) / fmt::format("{}.out", task));
  }
  return lines;
}

}  // namespace petlab::orchestrator
