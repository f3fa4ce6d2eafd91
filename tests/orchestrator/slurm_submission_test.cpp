#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"
#include "orchestrator/slurm/submission.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab::orchestrator;
using petlab::protocol::TrialDirectory;
using petlab::testing::run_command;
using petlab::testing::TempDir;

namespace {

// A runs folder whose name needs quoting in a shell, two attempts, and a worker that runs `first`
// and then exits with the number of its attempt.
struct Jobs {
  explicit Jobs(const std::string& first = "") {
    folder.write("it's $a/worker",
                 "#!/bin/sh\n" + first + "\necho \"$1\" $OMP_NUM_THREADS\nexit ${1##*/}\n");
    ::chmod((runs / "worker").c_str(), 0755);
    for (const char* attempt : {"t1/1", "t1/3"}) {
      std::filesystem::create_directories(runs / attempt);
      submission.attempts.push_back(runs / attempt);
    }
    write_submission(runs, submission, runs / "worker", 2);
  }
  petlab::testing::CommandResult task(int number, int array_job = 12, const char* more = "") const {
    return run_command(fmt::format(
        "env -u OMP_NUM_THREADS SLURM_JOB_ID=99 SLURM_ARRAY_JOB_ID={} SLURM_ARRAY_TASK_ID={} "
        "SLURMD_NODENAME=n1 {} sh {}/.slurm/petlab.o.1/job.sh",
        array_job, number, more, "\"" + folder.path().string() + "/it's \\$a\""));
  }
  TempDir folder;
  std::filesystem::path runs = folder.path() / "it's $a";
  Submission submission{"petlab.o.1", {}};
};

}  // namespace

TEST_CASE("A job runs the worker on its task's attempt and records its end", "[orchestrator]") {
  const Jobs jobs;
  CHECK(jobs.task(1).exit_code == 3);
  const TrialDirectory directory(jobs.submission.attempts[1]);
  const std::optional<JobLog> log = read_job_log(directory);
  REQUIRE(log);
  CHECK(log->job == "12_1");
  CHECK(log->host == "n1");
  CHECK(log->exit_code == 3);
  CHECK_FALSE(log->withdrawn);
  CHECK(job_last_lines(directory, jobs.runs, "petlab.o.1", 1) ==
        directory.folder().string() + " 2");
  CHECK_FALSE(read_job_log(TrialDirectory(jobs.submission.attempts[0])));
}

TEST_CASE("A job's worker gets its arguments unchanged, even those special to a shell",
          "[orchestrator]") {
  Jobs jobs;
  const std::vector<std::string> arguments = {"-c", "echo \"$1|$2\"; exit 4", "it's", "$a b"};
  write_submission(jobs.runs, jobs.submission, {"/bin/sh", arguments}, 1);
  CHECK(jobs.task(0).exit_code == 4);
  const TrialDirectory directory(jobs.submission.attempts[0]);
  CHECK(job_last_lines(directory, jobs.runs, "petlab.o.1", 0) ==
        "$a b|" + directory.folder().string());
}

TEST_CASE("A job records its end after a torn line, too", "[orchestrator]") {
  // Its node's disk was full when it recorded its start.
  const Jobs jobs("printf '{\"v\":1,\"ty' >\"$1/job.jsonl\"");
  CHECK(jobs.task(1).exit_code == 3);
  const std::optional<JobLog> log = read_job_log(TrialDirectory(jobs.submission.attempts[1]));
  REQUIRE(log);
  CHECK(log->exit_code == 3);
}

TEST_CASE("An attempt is run by one job, and only once", "[orchestrator]") {
  const Jobs jobs;
  CHECK(jobs.task(1).exit_code == 3);
  // Slurm restarts the job, and a duplicate of its submission starts.
  CHECK(jobs.task(1, 12, "SLURM_RESTART_COUNT=1").exit_code == 0);
  CHECK(jobs.task(1, 13).exit_code == 0);
  const TrialDirectory directory(jobs.submission.attempts[1]);
  CHECK(read_job_log(directory)->job == "12_1");
  CHECK(job_last_lines(directory, jobs.runs, "", 1) == directory.folder().string() + " 2");
  CHECK_FALSE(withdraw(directory, 1));
}

TEST_CASE("No job runs a withdrawn attempt", "[orchestrator]") {
  const Jobs jobs;
  const TrialDirectory directory(jobs.submission.attempts[1]);
  CHECK(withdraw(directory, 1));
  CHECK(withdraw(directory, 2));
  CHECK(jobs.task(1).exit_code == 0);
  CHECK(read_job_log(directory)->withdrawn);
  CHECK_FALSE(std::filesystem::exists(directory.log()));
}

TEST_CASE("A job log or task list that cannot be read is not treated as missing",
          "[orchestrator]") {
  const Jobs jobs;
  const TrialDirectory directory(jobs.submission.attempts[1]);
  const std::filesystem::path tasks = jobs.runs / ".slurm/petlab.o.1/tasks";
  const auto message_of = [](const auto& read) {
    std::string message = "none";
    try {
      read();
    } catch (const petlab::base::Error& error) {
      message = error.what();
    }
    return message;
  };
  // The files become links to themselves, since root may read every file.
  std::filesystem::create_symlink(directory.job_log(), directory.job_log());
  std::filesystem::remove(tasks);
  std::filesystem::create_symlink(tasks, tasks);
  const std::string why = ": cannot be read: Too many levels of symbolic links";
  CHECK(message_of([&] { read_job_log(directory); }) == directory.job_log().string() + why);
  CHECK(message_of([&] { withdraw(directory, 1); }) == directory.job_log().string() + why);
  CHECK(message_of([&] { submissions_of(jobs.runs, "o"); }) == tasks.string() + why);
}

TEST_CASE("A job without an attempt reports that", "[orchestrator]") {
  const Jobs jobs;
  std::filesystem::remove_all(jobs.submission.attempts[0]);
  const auto result = jobs.task(0);
  CHECK(result.exit_code == 1);
  const auto none = jobs.task(7);
  CHECK(none.exit_code == 1);
  CHECK(none.err.find("petlab: line 8 of ") != std::string::npos);
}

TEST_CASE("The last submission of an attempt is found by its owner", "[orchestrator]") {
  const Jobs jobs;
  Submission later{submission_id("o", 10), {jobs.submission.attempts[1]}};
  write_submission(jobs.runs, later, jobs.runs / "worker", 1);
  write_submission(jobs.runs, {submission_id("other", 1), {"/x"}}, jobs.runs / "worker", 1);
  const auto found = submissions_of(jobs.runs, "o");
  REQUIRE(found.size() == 2);
  CHECK(found.at(jobs.submission.attempts[0]).id == "petlab.o.1");
  CHECK(found.at(jobs.submission.attempts[1]).id == "petlab.o.10");
  CHECK(found.at(jobs.submission.attempts[1]).task == 0);
  CHECK(submission_owners(jobs.runs) ==
        std::map<std::string, std::string>{
            {"petlab.o.1", "o"}, {"petlab.o.10", "o"}, {"petlab.other.1", "other"}});
  remove_submission(jobs.runs, "petlab.o.1");
  CHECK(submissions_of(jobs.runs, "o").size() == 1);
}
