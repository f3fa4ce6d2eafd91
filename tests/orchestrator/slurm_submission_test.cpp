#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/slurm/submission.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab::orchestrator;
using petlab::testing::read_file;
using petlab::testing::run_command;
using petlab::testing::TempDir;

using Catch::Matchers::EndsWith;

namespace fs = std::filesystem;

namespace {

const std::string kReportsEnd = R"(echo '{"type":"finished"}' >>"$attempt/events.jsonl")";

// A runs folder whose name needs quoting in a shell, two attempts, and a worker that runs `each`
// for each attempt and then exits with 3.
struct Jobs {
  explicit Jobs(const std::string& each = "echo \"$attempt\" $OMP_NUM_THREADS\n" + kReportsEnd) {
    folder.write("it's $a/worker",
                 "#!/bin/sh\nwhile read -r attempt; do\n" + each + "\ndone\nexit 3\n");
    ::chmod((runs / "worker").c_str(), 0755);
    for (const char* attempt : {"t1/1", "t1/3"}) {
      fs::create_directories(runs / attempt);
      attempts.push_back(runs / attempt);
    }
    script = {runs / "worker", 2, "", false, std::chrono::seconds(60), {}};
    write_submission(runs, submission, script);
  }
  TaskFiles files(int task) const { return {runs, submission.id, task}; }
  void give(int task, const std::vector<std::string>& lines) const {
    for (const std::string& line : lines) append_to_inbox(files(task).inbox, line);
  }
  petlab::testing::CommandResult run(int task, int array_job = 12, const char* more = "",
                                     const char* shell = "sh") const {
    return run_command(fmt::format(
        "env -u OMP_NUM_THREADS SLURM_JOB_ID=99 SLURM_ARRAY_JOB_ID={} SLURM_ARRAY_TASK_ID={} "
        "SLURMD_NODENAME=n1 {} {} {}/.slurm/petlab.o.1/job.sh",
        array_job, task, more, shell, "\"" + folder.path().string() + "/it's \\$a\""));
  }
  TempDir folder;
  fs::path runs = folder.path() / "it's $a";
  std::vector<fs::path> attempts;
  JobScript script;
  Submission submission{"petlab.o.1", 2};
};

}  // namespace

TEST_CASE("A job's worker gets the attempts of its inbox, and the job records its end",
          "[orchestrator]") {
  const Jobs jobs;
  jobs.give(1, {jobs.attempts[1], jobs.attempts[0], "end"});
  CHECK(jobs.run(1).exit_code == 3);
  const std::optional<JobLog> log = read_job_log(jobs.files(1).record);
  REQUIRE(log);
  CHECK(log->job == "12_1");
  CHECK(log->host == "n1");
  CHECK(log->exit_code == 3);
  CHECK_FALSE(log->withdrawn);
  CHECK_FALSE(log->idle);
  // Each attempt has its own part of the output, although the worker announces nothing.
  for (const fs::path& attempt : jobs.attempts) {
    CHECK(read_file(attempt / "log.txt") == attempt.string() + " 2\n");
    CHECK(job_last_lines(attempt / "log.txt", jobs.files(1).output) == attempt.string() + " 2");
  }
  CHECK_FALSE(read_job_log(jobs.files(0).record));
}

TEST_CASE("A worker that announces its attempts gets them ahead, and its output is divided exactly",
          "[orchestrator]") {
  // The second attempt is read before the first is over.
  const Jobs jobs(R"(printf 'loose\036%s\n' "$attempt"; echo one of ${attempt##*/}
[ -n "$first" ] || { first=$attempt; continue; }
printf '\036%s\n' "$first"; printf 'late \303')");
  jobs.give(0, {jobs.attempts[0], jobs.attempts[1], "end"});
  CHECK(jobs.run(0).exit_code == 3);
  CHECK(read_file(jobs.attempts[0] / "log.txt") ==
        "one of 1\nloose"
        "late \303\n");
  CHECK(read_file(jobs.attempts[1] / "log.txt") == "one of 3\n");
  CHECK(read_file(jobs.files(0).output) == "loose");
}

TEST_CASE("A job's worker gets the attempts of a gang on one line, without those that are gone",
          "[orchestrator]") {
  const Jobs jobs(
      R"(printf '%s\n' "$attempt" >>lines; for attempt in $(printf '%s' "$attempt" | tr '\t' '\n' | sed 's/ /?/'); do
)" + kReportsEnd +
      "\ndone");
  const std::string torn = inbox_line({jobs.attempts[0], jobs.attempts[1]});
  jobs.give(0, {torn.substr(0, torn.size() - 2),
                inbox_line({jobs.attempts[0], jobs.runs / "gone" / "1", jobs.attempts[1]}), "end"});
  CHECK(jobs.run(0).exit_code == 3);
  CHECK(read_file(jobs.runs / ".slurm/petlab.o.1/lines") ==
        jobs.attempts[0].string() + "\t" + jobs.attempts[1].string() + "\n");
  for (const fs::path& attempt : jobs.attempts) CHECK(fs::exists(attempt / "events.jsonl"));
}

TEST_CASE("A job for one trial starts the worker with the attempt's folder", "[orchestrator]") {
  Jobs jobs;
  const std::vector<std::string> arguments = {"-c", "echo \"$1|$2\"; exit 4", "it's", "$a b"};
  jobs.script.worker = {"/bin/sh", arguments};
  jobs.script.one_attempt = true;
  write_submission(jobs.runs, jobs.submission, jobs.script);
  jobs.give(0, {jobs.attempts[0]});
  CHECK(jobs.run(0).exit_code == 4);
  CHECK(read_file(jobs.attempts[0] / "log.txt") == "$a b|" + jobs.attempts[0].string() + "\n");
  jobs.give(1, {"end"});
  CHECK(jobs.run(1).exit_code == 0);
}

TEST_CASE("A job with several tasks makes each a step, and notes the end of one that cannot",
          "[orchestrator]") {
  Jobs jobs("echo \"$attempt\" $OMP_NUM_THREADS $SLURM_STEP_ID\n" + kReportsEnd);
  jobs.submission = {"petlab.o.1", 5, 3};
  jobs.script.gpus = "a100:1";
  write_submission(jobs.runs, jobs.submission, jobs.script);
  // A stand-in that starts each step except that of task 4, and dies with that of task 1.
  jobs.folder.write("bin/srun", R"(#!/bin/sh
for word; do task=$word; done
echo "$*" >>"$(dirname "$0")/words"
[ "$task" != 4 ] || { echo 'srun: error: no'; exit 6; }
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_STEP_ID=$((task + 10))
[ "$task" != 1 ] || { "$@" & sleep 1; exit 137; }
"$@"
)");
  ::chmod((jobs.folder.path() / "bin/srun").c_str(), 0755);
  const std::string path = fmt::format("PATH={}/bin:$PATH", jobs.folder.path().string());
  jobs.give(0, {jobs.attempts[0], "end"});
  jobs.give(3, {jobs.attempts[1], "end"});
  const auto log = [&jobs](int task) { return read_job_log(jobs.files(task).record).value(); };
  CHECK(withdraw(jobs.files(2).record, 1));
  CHECK(jobs.run(0, 12, path.c_str()).exit_code == 0);
  CHECK(log(0).job == "12_0");
  CHECK(log(0).step == "10");
  CHECK(log(0).exit_code == 3);
  CHECK(log(1).exit_code == 137);  // noted by the job
  CHECK_FALSE(log(2).exit_code);
  for (const int task : {0, 1}) CHECK(fs::exists(jobs.files(task).over));
  CHECK_FALSE(fs::exists(jobs.files(3).record));
  append_to_inbox(jobs.files(1).inbox, kInboxEnd);
  CHECK(jobs.run(1, 12, path.c_str()).exit_code == 0);
  CHECK(log(3).job == "12_1");
  CHECK(read_file(jobs.attempts[1] / "log.txt") == jobs.attempts[1].string() + " 2 13\n");
  CHECK(log(4).exit_code == 6);
  CHECK(job_last_lines({}, jobs.files(4).output) == "srun: error: no");
  CHECK(read_file(jobs.folder.path() / "bin/words")
            .find("--cpus-per-task=2 --mem=0 --mpi=none --export=ALL --gres=gpu:a100:1 ") !=
        std::string::npos);
  // The tasks of a submission that are left, with the jobs that have them.
  const std::vector<LeftJob> left = tasks_of(jobs.runs, "o");
  REQUIRE(left.size() == 5);
  CHECK(left[2].array_task == 0);
  CHECK(left[3].array_task == 1);
  CHECK(left[3].shares_job);
  // A restarted job finds its tasks begun.
  CHECK(jobs.run(1, 12, path.c_str()).exit_code == 0);
  CHECK(log(4).exit_code == 6);
}

TEST_CASE("A job's record shows whether a signal came before its end", "[orchestrator]") {
  const Jobs jobs("kill -TERM $PPID; sleep 0.2\n" + kReportsEnd);
  jobs.give(0, {"end"});
  jobs.give(1, {jobs.attempts[0], "end"});
  for (const int task : {0, 1}) {
    CHECK(jobs.run(task).exit_code == 3);
    CHECK(read_job_log(jobs.files(task).record)->exit_code == 3);
    CHECK(read_job_log(jobs.files(task).record)->signalled == (task == 1));
  }
}

TEST_CASE("A job's worker has the environment of its set-up", "[orchestrator]") {
  Jobs jobs("echo $GREETING $task\n" + kReportsEnd);
  // The set-up neither reads the inbox nor changes the script's own variables.
  jobs.script.setup = {"export GREETING='it is set'", "task=7\ncat", "export task"};
  write_submission(jobs.runs, jobs.submission, jobs.script);
  jobs.give(1, {jobs.attempts[0], "end"});
  CHECK(jobs.run(1).exit_code == 3);
  CHECK(read_file(jobs.attempts[0] / "log.txt") == "it is set 7\n");
  CHECK(read_job_log(jobs.files(1).record)->exit_code == 3);
}

TEST_CASE("A job whose set-up fails ends before its worker and names the command",
          "[orchestrator]") {
  const std::string command = GENERATE("module load 'it'", "if", "(exit 5)");
  Jobs jobs;
  jobs.script.setup = {"true", command, "echo later"};
  jobs.script.one_attempt = GENERATE(false, true);
  write_submission(jobs.runs, jobs.submission, jobs.script);
  jobs.give(0, {"end"});
  const int code = jobs.run(0, 12, "", "bash").exit_code;
  CHECK(code == (command == "(exit 5)" ? 5 : command == "if" ? 2 : 127));
  CHECK(read_job_log(jobs.files(0).record)->exit_code == code);
  CHECK_THAT(
      read_file(jobs.files(0).output),
      EndsWith(fmt::format("petlab: --slurm-setup ended with exit code {}: {}\n", code, command)));
}

TEST_CASE("A job that gets no attempt ends by itself, and says so", "[orchestrator]") {
  Jobs jobs;
  jobs.script.idle = std::chrono::seconds(1);
  write_submission(jobs.runs, jobs.submission, jobs.script);
  jobs.give(0, {jobs.attempts[0]});
  CHECK(jobs.run(0).exit_code == 3);
  CHECK(read_job_log(jobs.files(0).record)->idle);
  CHECK(read_file(jobs.attempts[0] / "events.jsonl") == "{\"type\":\"finished\"}\n");
}

TEST_CASE("A job ends when its worker does, even if a process that it left keeps its output open",
          "[orchestrator]") {
  const Jobs jobs("sleep 30 & exit 5");
  jobs.give(0, {jobs.attempts[0], jobs.attempts[1]});
  const auto began = std::chrono::steady_clock::now();
  CHECK(jobs.run(0).exit_code == 5);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  CHECK(read_job_log(jobs.files(0).record)->exit_code == 5);
}

TEST_CASE("A job leaves out torn lines of its inbox and attempts that are gone", "[orchestrator]") {
  const Jobs jobs;
  jobs.folder.write("it's $a/.slurm/petlab.o.1/0.inbox",
                    jobs.attempts[0].string().substr(0, jobs.attempts[0].string().size() - 3));
  jobs.give(0, {(jobs.runs / "gone" / "1").string(), jobs.attempts[1], "end"});
  CHECK(jobs.run(0).exit_code == 3);
  CHECK_FALSE(fs::exists(jobs.attempts[0] / "log.txt"));
  CHECK(fs::exists(jobs.attempts[1] / "log.txt"));
}

TEST_CASE("A job records its end after a torn line, too", "[orchestrator]") {
  // Its node's disk was full when it recorded its start.
  const Jobs jobs(R"(record=${attempt%/*/*}/.slurm/petlab.o.1/1.jsonl
printf '{"v":1,"ty' >"$record")");
  jobs.give(1, {jobs.attempts[1], "end"});
  CHECK(jobs.run(1).exit_code == 3);
  const std::optional<JobLog> log = read_job_log(jobs.files(1).record);
  REQUIRE(log);
  CHECK(log->exit_code == 3);
}

TEST_CASE("A task is run by one job, and only once", "[orchestrator]") {
  const Jobs jobs;
  jobs.give(1, {jobs.attempts[1], "end"});
  CHECK(jobs.run(1).exit_code == 3);
  // Slurm restarts the job, and a duplicate of its submission starts.
  CHECK(jobs.run(1, 12, "SLURM_RESTART_COUNT=1").exit_code == 0);
  CHECK(jobs.run(1, 13).exit_code == 0);
  CHECK(read_job_log(jobs.files(1).record)->job == "12_1");
  CHECK(read_file(jobs.attempts[1] / "log.txt") == jobs.attempts[1].string() + " 2\n");
  CHECK_FALSE(withdraw(jobs.files(1).record, 1));
}

TEST_CASE("No job runs a withdrawn task", "[orchestrator]") {
  const Jobs jobs;
  jobs.give(1, {jobs.attempts[1], "end"});
  CHECK(withdraw(jobs.files(1).record, 1));
  CHECK(withdraw(jobs.files(1).record, 2));
  CHECK(jobs.run(1).exit_code == 0);
  CHECK(read_job_log(jobs.files(1).record)->withdrawn);
  CHECK_FALSE(fs::exists(jobs.attempts[1] / "log.txt"));
}

TEST_CASE("A job's record or inbox that cannot be read is not treated as missing",
          "[orchestrator]") {
  const Jobs jobs;
  const auto message_of = [](const auto& read) {
    std::string message = "none";
    try {
      read();
    } catch (const std::exception& error) {
      message = error.what();
    }
    return message;
  };
  // The files become links to themselves, since root may read every file.
  const TaskFiles files = jobs.files(0);
  fs::create_symlink(files.record, files.record);
  fs::create_symlink(files.inbox, files.inbox);
  const std::string why = ": cannot be read: Too many levels of symbolic links";
  CHECK(message_of([&] { read_job_log(files.record); }) == files.record.string() + why);
  CHECK(message_of([&] { withdraw(files.record, 1); }) == files.record.string() + why);
  CHECK(message_of([&] { tasks_of(jobs.runs, "o"); }) == files.inbox.string() + why);
  CHECK(message_of([&] { append_to_inbox(files.inbox, "end"); }) ==
        files.inbox.string() + ": cannot be written: Too many levels of symbolic links");
}

TEST_CASE("A job whose submission is gone reports that", "[orchestrator]") {
  const Jobs jobs;
  const std::string script = (jobs.folder.path() / "copy.sh").string();
  jobs.folder.write("copy.sh", read_file(submission_folder(jobs.runs, "petlab.o.1") / "job.sh"));
  remove_submission(jobs.runs, "petlab.o.1");
  const auto result = run_command("sh " + script);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find(" cannot see " + jobs.runs.string()) != std::string::npos);
}

TEST_CASE("The tasks of an owner are found with what they were given", "[orchestrator]") {
  const Jobs jobs;
  write_submission(jobs.runs, {submission_id("o", 10), 1}, jobs.script);
  write_submission(jobs.runs, {submission_id("other", 1), 1}, jobs.script);
  write_number(jobs.runs, "petlab.o.10", "77");
  const bool gang = GENERATE(false, true);
  const std::string line = inbox_line(jobs.attempts);
  jobs.give(1, {line.substr(0, line.size() - 1)});  // torn
  if (gang) {
    jobs.give(1, {line, "end"});
  } else {
    jobs.give(1, {jobs.attempts[0], jobs.attempts[1], "end"});
  }
  const std::vector<LeftJob> found = tasks_of(jobs.runs, "o");
  REQUIRE(found.size() == 3);
  CHECK((found[0].name == "petlab.o.1" && found[0].task == 0 && found[0].given.empty()));
  CHECK((found[1].name == "petlab.o.1" && found[1].task == 1 && found[1].number.empty()));
  CHECK(found[1].given == jobs.attempts);
  CHECK((found[2].name == "petlab.o.10" && found[2].task == 0 && found[2].number == "77"));
  CHECK(submission_owners(jobs.runs) ==
        std::map<std::string, std::string>{
            {"petlab.o.1", "o"}, {"petlab.o.10", "o"}, {"petlab.other.1", "other"}});
  remove_submission(jobs.runs, "petlab.o.1");
  CHECK(tasks_of(jobs.runs, "o").size() == 1);
}
