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
#include "base/trimmed.h"
#include "orchestrator/host/error.h"
#include "orchestrator/launching/worker_log.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {
namespace {

constexpr std::string_view kPrefix = "petlab.";
constexpr const char* kTasks = "tasks";
constexpr const char* kNumber = "number";
// limit for inboxes and job logs
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// What becomes the worker, with its inbox as standard input. A worker in half of its environment
// would fail later or train on the wrong device, so each command of the set-up must succeed.
std::string work_of(const JobScript& script) {
  std::string lines;
  for (const std::string& command : script.setup) {
    lines += fmt::format("  eval {0} </dev/null || not_set_up $? {0}\n", quoted(command));
  }
  std::string worker = quoted(script.worker.program.string());
  for (const std::string& argument : script.worker.arguments) worker += " " + quoted(argument);
  lines += script.one_attempt
               ? fmt::format("  IFS= read -r attempt || exit 0\n  exec {} \"$attempt\" </dev/null",
                             worker)
               : fmt::format("  exec {} -", worker);
  return lines;
}

// For any POSIX shell. With `set -C`, dash and bash create files with O_EXCL, which also works on
// NFS.
constexpr std::string_view kScript = R"sh(#!{shell}
# A job of a submission of petlab (docs/internals/orchestrator.md), or the task that it is called with: a worker that
# runs the attempts in its inbox.
folder={folder}
task=${{1:-${{SLURM_ARRAY_TASK_ID:-0}}}}
job=${{SLURM_ARRAY_JOB_ID:+${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID}}
job=${{job:-$SLURM_JOB_ID}}
if ! cd "$folder"; then
  echo "petlab: $(hostname) cannot see $folder" >&2
  exit 1
fi
note() {{
  printf '{{"v":1,"type":"%s","time":%s,"job":"%s","restarts":%s,"host":"%s"%s}}\n' \
    "$1" "$(date +%s)" "$job" "${{SLURM_RESTART_COUNT:-0}}" "${{SLURMD_NODENAME:-$(hostname)}}" "$2"
}}
after=
note_end() {{
  [ -z "$(tail -c 1 "$task.jsonl")" ] || echo >>"$task.jsonl"
  : >"$task.over"
  note ended ",\"exit_code\":$1$after" >>"$task.jsonl"
}}
# A job with several tasks makes each a step. If a step dies without noting its end, the job does.
if [ $# = 0 ] && [ {tasks_of_job} -gt 1 ]; then
  trap : TERM INT HUP
  task=$((${{SLURM_ARRAY_TASK_ID:-0}} * {tasks_of_job}))
  next=$((task + {tasks_of_job}))
  while [ "$task" -lt "$next" ] && [ "$task" -lt {tasks} ]; do
    # A restarted job finds its tasks begun.
    [ -e "$task.jsonl" ] || (
      trap : TERM INT HUP
      srun --exact --nodes=1 --ntasks=1 --cpus-per-task={threads} --mem=0 --mpi=none --export=ALL {gres} \
        "$folder/job.sh" "$task" </dev/null >>"$task.out" 2>&1
      code=$?
      began=$(note began)
      (set -C; printf '%s\n' "$began" >"$task.jsonl") 2>/dev/null
      grep -q '"ended"\|"withdrawn"' "$task.jsonl" || note_end "$code"
    ) &
    task=$((task + 1))
  done
  until wait; do :; done
  exit 0
fi
# The job that creates the file runs the task; a restarted or duplicate job does not. An empty file would look withdrawn.
began=$(note began ",\"step\":\"$SLURM_STEP_ID\"")
if ! (set -C; printf '%s\n' "$began" >"$task.jsonl") 2>/dev/null; then
  [ -e "$task.jsonl" ] && exit 0
  echo "petlab: $folder/$task.jsonl cannot be created on $(hostname)" >&2
  exit 1
fi
if ! own=$(mktemp -d "${{TMPDIR:-/tmp}}/petlab.XXXXXX") || ! mkfifo "$own/in" "$own/out"; then
  note_end 1
  exit 1
fi
unset PETLAB_LOCK_FD PETLAB_WORKER
export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-{threads}}}"

# A line of the inbox is an attempt, or several to train together, separated by tabs and followed by a tab and a dot.
tab=$(printf '\t')
is_over() {{
  (
    set -f
    IFS=$tab
    for attempt in $1; do
      tail -n 1 "$attempt/events.jsonl" 2>/dev/null | grep -q '"type": *"\(finished\|failed\|stopped\)"' || exit 1
    done
  )
}}
# Prints those of a line's attempts whose folders exist.
existing() {{
  (
    set -f
    IFS=$tab
    line=
    for attempt in $1; do
      [ -d "$attempt" ] && line="$line${{line:+$tab}}$attempt"
    done
    printf '%s' "$line"
  )
}}

# Prints the lines of the inbox as they come. A worker that does not announce its attempts gets
# the next line when the last is over, so that its output can be divided.
feed() {{
  trap '' TERM INT HUP
  given=0 last= pause=0.05 quiet_since=$(date +%s)
  while [ -e "$own/in" ] && [ -e "$task.inbox" ]; do
    if [ "$(wc -l <"$task.inbox")" -gt "$given" ]; then
      attempt=$(sed -n "$((given + 1))p" "$task.inbox")
      [ "$attempt" = end ] && return
      if [ -z "$last" ] || [ -e "$own/announces" ] || is_over "$last"; then
        given=$((given + 1))
        case $attempt in
          *"$tab".) attempt=${{attempt%"$tab".}} ;;
          *"$tab"*) continue ;;
        esac
        attempt=$(existing "$attempt")
        [ -n "$attempt" ] || continue
        printf '%s\n' "${{attempt%%"$tab"*}}/log.txt" >"$own/log"
        printf '%s\n' "$attempt"
        last=$attempt pause=0.05 quiet_since=$(date +%s)
        continue
      fi
      pause=0.1
    fi
    if [ $(($(date +%s) - quiet_since)) -ge {idle} ]; then
      if [ -z "$last" ] || is_over "$last"; then
        note idle >>"$task.jsonl"
        return
      fi
      quiet_since=$(date +%s)
    fi
    sleep $pause
    case $pause in 0.05) pause=0.1;; 0.1) pause=0.2;; 0.2) pause=0.5;; *) pause=1;; esac
  done
}}

log_to() {{
  command exec 3>>"$1" || command exec 3>>"$task.out"
  log=$1
}}

# Divides the output by attempts. The character 0x1E and an attempt's folder at the end of a line announce it.
divide() {{
  trap '' TERM INT HUP
  mark=$(printf '\036')
  log_to "$task.out"
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      *"$mark"/*)
        printf '%s' "${{line%%"$mark"*}}" >&3
        : >"$own/announces"
        log_to "${{line##*"$mark"}}/log.txt"
        continue ;;
    esac
    if [ ! -e "$own/announces" ] && read -r next <"$own/log" && [ "$next" != "$log" ]; then
      log_to "$next"
    fi
    printf '%s\n' "$line" >&3
  done
  : >"$own/divided"
}}

: >>"$task.inbox"
: >"$own/log"
divide <"$own/out" &
feed >"$own/in" &
not_set_up() {{
  echo "petlab: --slurm-setup ended with exit code $1: $2"
  exit "$1"
}}
# The worker gets Slurm's signals itself; the shell stays to note how it ended.
trap 'after=,\"after\":\"signal\"' TERM INT HUP
(
{work}
) <"$own/in" >"$own/out" 2>&1
code=$?
rm "$own/in"
# A process that the worker left behind may keep its output open.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ -e "$own/divided" ] && break
  sleep 0.1
done
rm -rf "$own"
note_end $code
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
                      const JobScript& script) {
  const std::filesystem::path folder = submission_folder(runs, submission.id);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  const std::filesystem::path file = folder / "job.sh";
  base::write_file_atomically(
      file, fmt::format(fmt::runtime(kScript), fmt::arg("folder", quoted(folder.string())),
                        // `module` is a function of login shells.
                        fmt::arg("shell", script.setup.empty() ? "/bin/sh" : "/bin/bash -l"),
                        fmt::arg("work", work_of(script)), fmt::arg("threads", script.threads),
                        fmt::arg("gres", script.gpus.empty() ? "" : "--gres=gpu:" + script.gpus),
                        fmt::arg("tasks", submission.tasks),
                        fmt::arg("tasks_of_job", submission.tasks_of_job),
                        fmt::arg("idle", script.idle.count())));
  // srun executes it.
  std::filesystem::permissions(file, std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add);
  // Written last: a submission with this file is complete.
  base::write_file_atomically(folder / kTasks,
                              fmt::format("{} {}\n", submission.tasks, submission.tasks_of_job));
}

void write_number(const std::filesystem::path& runs, const std::string& id,
                  const std::string& number) {
  base::write_file_atomically(submission_folder(runs, id) / kNumber, number + "\n");
}

TaskFiles::TaskFiles(const std::filesystem::path& runs, const std::string& id, std::int64_t task) {
  const std::filesystem::path base = submission_folder(runs, id) / std::to_string(task);
  record = base.string() + ".jsonl";
  inbox = base.string() + ".inbox";
  output = base.string() + ".out";
  over = base.string() + ".over";
}

std::string inbox_line(const std::vector<std::filesystem::path>& attempt_folders) {
  return protocol::line_of(attempt_folders) + (attempt_folders.size() > 1 ? "\t." : "");
}

void append_to_inbox(const std::filesystem::path& inbox, const std::string& line) {
  const base::FileDescriptor file(
      ::open(inbox.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  // A killed process may have written a part of a line.
  char last = '\n';
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
  const bool torn = size > 0 && ::pread(file.get(), &last, 1, size - 1) == 1 && last != '\n';
  if (!file || !base::write_all(file.get(), (torn ? "\n" : "") + line + "\n") ||
      ::fdatasync(file.get()) != 0) {
    throw Error(fmt::format("{}: cannot be written: {}", inbox.string(), std::strerror(errno)));
  }
}

std::vector<LeftJob> tasks_of(const std::filesystem::path& runs, const std::string& owner) {
  std::map<std::int64_t, std::string> ids;
  const std::string prefix = fmt::format("{}{}.", kPrefix, owner);
  for (const std::filesystem::path& entry : base::entries_of(submissions_folder(runs))) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto number = whole_number(std::string_view(name).substr(prefix.size()))) {
      ids[*number] = name;
    }
  }
  std::vector<LeftJob> found;
  for (const auto& [order, id] : ids) {
    const std::filesystem::path folder = submission_folder(runs, id);
    const auto content = [&](const std::filesystem::path& file) {
      return base::read_file_if_any(file, kMostBytes).value_or("");
    };
    std::istringstream tasks(content(folder / kTasks));
    std::int64_t count = 0;
    std::int64_t of_job = 1;
    if (tasks >> count) tasks >> of_job;
    of_job = std::max<std::int64_t>(of_job, 1);
    const std::string number(base::trimmed(content(folder / kNumber)));
    for (std::int64_t task = 0; task < count; ++task) {
      LeftJob& left = found.emplace_back();
      left.name = id;
      left.task = task;
      left.array_task = task / of_job;
      left.shares_job = of_job > 1;
      left.number = number;
      const TaskFiles files(runs, id, task);
      std::istringstream in(content(files.inbox));
      if (const std::optional<JobLog> log = read_job_log(files.record)) {
        left.job = log->job;
        left.host = log->host;
      }
      for (std::string line; std::getline(in, line) && !in.eof();) {
        const bool is_gang = line.ends_with("\t.");
        if (!line.starts_with('/') || (!is_gang && line.find('\t') != std::string::npos)) continue;
        std::istringstream attempts(line.substr(0, line.size() - (is_gang ? 2 : 0)));
        for (std::string attempt; std::getline(attempts, attempt, '\t');) {
          left.given.emplace_back(attempt);
        }
      }
    }
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
  std::error_code error;
  // A job may just write its last file.
  for (int tries = 3; tries > 0; --tries) {
    std::filesystem::remove_all(submission_folder(runs, id), error);
    if (!error) return;
  }
}

std::optional<JobLog> read_job_log(const std::filesystem::path& record) {
  const std::optional<std::string> content = base::read_file_if_any(record, kMostBytes);
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
    if (type == "idle") log.idle = true;
    if (type == "began") {
      log.job = text("job");
      log.step = text("step");
      log.host = text("host");
    }
    const auto code = json.find("exit_code");
    if (type == "ended" && code != json.end() && code->is_number_integer()) {
      log.exit_code = code->get<int>();
      log.signalled = text("after") == "signal";
    }
  }
  return log;
}

bool withdraw(const std::filesystem::path& record, double time) {
  const base::FileDescriptor file(
      ::open(record.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) {
    if (errno == EEXIST) {
      const std::optional<JobLog> log = read_job_log(record);
      // The file is empty if its creator died before writing a line.
      return log && log->job.empty();
    }
    throw Error(fmt::format("{}: cannot be created: {}", record.string(), std::strerror(errno)));
  }
  const std::string line =
      nlohmann::ordered_json{{"v", 1}, {"type", "withdrawn"}, {"time", time}}.dump() + "\n";
  if (!base::write_all(file.get(), line)) {
    throw Error(fmt::format("{}: cannot be written: {}", record.string(), std::strerror(errno)));
  }
  return true;
}

std::string job_last_lines(const std::filesystem::path& log, const std::filesystem::path& output) {
  const std::string lines = log.empty() ? std::string() : tail_of(log);
  return lines.empty() ? tail_of(output) : lines;
}

}  // namespace petlab::orchestrator
