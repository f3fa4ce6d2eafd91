#include <signal.h>

#include <map>
#include <string>
#include <vector>

#include "orchestrator/host/error.h"
#include "orchestrator/slurm/launcher.h"
#include "orchestrator/slurm/text.h"
#include "tests/support/catch.h"

using namespace petlab::orchestrator;
using namespace std::chrono_literals;

namespace {

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("Tasks that share a line of squeue are read one by one", "[orchestrator]") {
  // Output of Slurm 22.05, except for the line with brackets, which --array expands.
  const std::vector<JobRow> rows = parse_squeue(
      "1_9|RUNNING|n2|None|1:05|petlab.12-34-ab.1\n"
      "67|CANCELLED||JobHeldUser|INVALID|petlab.12-34-ab.2\n"
      "\n"
      "12_[4-6,9%2]|PENDING||ReqNodeNotAvail, UnavailableNodes:n[1-3]|0:00|a|b\n");
  REQUIRE(rows.size() == 6);
  CHECK(rows[0] == JobRow{"1_9", "RUNNING", "n2", "None", 65s, "petlab.12-34-ab.1"});
  CHECK(rows[1] == JobRow{"67", "CANCELLED", "", "JobHeldUser", std::nullopt, "petlab.12-34-ab.2"});
  CHECK(rows[2].job == "12_4");
  CHECK(rows[4].job == "12_6");
  CHECK(rows[5] ==
        JobRow{"12_9", "PENDING", "", "ReqNodeNotAvail, UnavailableNodes:n[1-3]", 0s, "a|b"});
  CHECK(parse_squeue("").empty());
}

TEST_CASE("A time is read in squeue's format", "[orchestrator]") {
  CHECK(parse_time("0:00") == 0s);
  CHECK(parse_time("59:59") == 59min + 59s);
  CHECK(parse_time("23:00:01") == 23h + 1s);
  CHECK(parse_time("3-02:00:05") == 74h + 5s);
  for (const char* text :
       {"", "INVALID", "UNLIMITED", "5", "1:", ":1", "-1:00", "1-2", "1-2:03", "1:2:3:4",
        "-1:00:00", "99999999999999999999:00", "99999999999999999999-01:00:00"}) {
    INFO(text);
    CHECK(parse_time(text) == std::nullopt);
  }
}

TEST_CASE("A line that squeue cannot have printed is refused and quoted", "[orchestrator]") {
  for (const char* line :
       {"1_9|RUNNING|n2|None|1:05", "slurm_load_jobs error: Unexpected message"}) {
    INFO(line);
    CHECK(message_of([&] { parse_squeue(line); }) ==
          "squeue printed '" + std::string(line) + "', expected %i|%T|%N|%r|%L|%j");
  }
}

TEST_CASE("Lines of squeue for jobs that cannot be petlab's are left out", "[orchestrator]") {
  for (const char* line : {"|RUNNING|n2|None|0:01|x", "1_|RUNNING|n2|None|0:01|x",
                           "a_1|RUNNING||||x", "1_[2|RUNNING||||x", "1_[a-b]|PENDING||||x",
                           "12+0|RUNNING|n1|None|0:01|x", "7|RUNNING|n1|None|0:01|two\nlines"}) {
    INFO(line);
    const auto rows = parse_squeue(std::string(line) + "\n1_9|RUNNING|n2|None|0:01|ours\n");
    CHECK(rows.back().job == "1_9");
    CHECK(rows.size() == (line[0] == '7' ? 2 : 1));
  }
  CHECK(parse_squeue("12+0|RUNNING|n1|None|0:01|x\n").empty());
  // A few characters are enough for a range of any length.
  CHECK(message_of([] { parse_squeue("7_[10-266366666661]|PENDING|n1|None|0:00|x\n"); }) ==
        "squeue printed more than 1000000 jobs, at '7_[10-266366666661]'");
}

TEST_CASE("The job number is read from sbatch's output, after the lines of a site",
          "[orchestrator]") {
  CHECK(parse_submission("1234\n") == "1234");
  CHECK(parse_submission("1234;cluster\n") == "1234");
  CHECK(parse_submission("Welcome to the cluster\n\n1234\n") == "1234");
  CHECK(message_of([] { parse_submission(""); }) ==
        "sbatch --parsable printed '', expected a job number");
  CHECK(message_of([] { parse_submission("Submitted batch job 12\n"); }) ==
        "sbatch --parsable printed 'Submitted batch job 12', expected a job number");
}

TEST_CASE("Temporary refusals, silence and permanent refusals are distinguished",
          "[orchestrator]") {
  CHECK(refusal_from("sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission "
                     "failed: Job violates accounting/QOS policy (job submit limit, user's size "
                     "and/or time limits)") == Refusal::limit);
  CHECK(refusal_from("sbatch: error: Slurm temporarily unable to accept job, sleeping and "
                     "retrying\nsbatch: error: Batch job submission failed: Resource temporarily "
                     "unavailable") == Refusal::limit);
  CHECK(
      refusal_from("slurm_load_jobs error: Unable to contact slurm controller (connect failure)") ==
      Refusal::silence);
  CHECK(refusal_from("sbatch: error: Batch job submission failed: Socket timed out on send/recv "
                     "operation") == Refusal::silence);
  // The first line may mean a limit, but it is unknown whether the last try arrived.
  CHECK(refusal_from("sbatch: error: Slurm temporarily unable to accept job, sleeping and "
                     "retrying\nsbatch: error: Batch job submission failed: Zero Bytes were "
                     "transmitted or received") == Refusal::silence);
  CHECK(refusal_from("sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job "
                     "submission failed: Invalid partition name specified") == Refusal::refused);
  CHECK(refusal_from("sbatch: error: Batch job submission failed: Invalid job array "
                     "specification") == Refusal::refused);
  CHECK(refusal_from("") == Refusal::refused);
}

TEST_CASE("The limits of scontrol show config are read", "[orchestrator]") {
  const SlurmLimits limits = parse_config(
      "Configuration data as of 2024-01-01T00:00:00\n"
      "AccountingStorageType   = accounting_storage/none\n"
      "MaxArraySize            = 100\n"
      "MaxJobCount             = 5000\n"
      "SLURM_VERSION           = 22.05.8\n");
  CHECK(limits == SlurmLimits{100, 5000, "22.05.8"});
  CHECK(parse_config("") == SlurmLimits{1001, 10000, ""});
  CHECK(message_of([] { parse_config("MaxArraySize = many\n"); }) ==
        "scontrol show config: MaxArraySize is 'many', must be a number");
}

TEST_CASE("The end of a job is read from scontrol and from sacct", "[orchestrator]") {
  const char* shown =
      "JobId=5 ArrayJobId=1 ArrayTaskId=3 JobName=JobState=x Requeue=0 JobState=FAILED "
      "Reason=RaisedSignal:9(Killed) Dependency=(null) Restarts=0 DerivedExitCode=0:0 ExitCode=0:9 "
      "RunTime=00:00:02\n";
  CHECK(parse_show_job(shown) == JobRecord{"FAILED", 0, 9});
  CHECK(parse_show_job("") == std::nullopt);
  CHECK(parse_sacct("1_2|COMPLETED|0:0\n1_3|CANCELLED by 1000|0:15\n", "1_3") ==
        JobRecord{"CANCELLED", 0, 15});
  CHECK(parse_sacct("1_2|COMPLETED|0:0\n", "1_3") == std::nullopt);
  CHECK(parse_sacct("Slurm accounting storage is disabled\n", "1_3") == std::nullopt);
  CHECK(parse_sacct("1_3|FAILED|nine\n", "1_3") == std::nullopt);
  CHECK(parse_show_job("JobState=FAILED ExitCode=nine\n") == std::nullopt);
  CHECK(is_unknown_job("slurm_load_jobs error: Invalid job id specified\n"));
  CHECK(is_unknown_job("Job 68_3 not found\n"));
  CHECK_FALSE(is_unknown_job("slurm_load_jobs error: Unable to contact slurm controller\n"));
}

TEST_CASE("Each job state has a phase; an unknown state counts as running", "[orchestrator]") {
  CHECK(job_phase("PENDING") == JobPhase::waiting);
  CHECK(job_phase("REQUEUE_HOLD") == JobPhase::waiting);
  CHECK(job_phase("RUNNING") == JobPhase::running);
  CHECK(job_phase("COMPLETING") == JobPhase::running);
  CHECK(job_phase("SUSPENDED") == JobPhase::paused);
  CHECK(job_phase("CANCELLED by 0") == JobPhase::ended);
  CHECK(job_phase("CANCELLED+") == JobPhase::ended);
  CHECK(job_phase("NODE_FAIL") == JobPhase::ended);
  CHECK(job_phase("INVENTED_LATER") == JobPhase::running);
}

TEST_CASE("Every job state of Slurm has the right phase", "[orchestrator]") {
  const std::map<JobPhase, std::vector<const char*>> phases = {
      {JobPhase::waiting,
       {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD",
        "CONFIGURING", "POWER_UP_NODE"}},
      {JobPhase::paused, {"SUSPENDED", "STOPPED"}},
      {JobPhase::running, {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "RESIZING"}},
      {JobPhase::ended,
       {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL",
        "DEADLINE", "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"}},
  };
  for (const auto& [phase, states] : phases) {
    for (const char* state : states) {
      INFO(state);
      CHECK(job_phase(state) == phase);
      CHECK(job_phase(std::string(state) + "+") == phase);
    }
  }
}

TEST_CASE("Only endings that a trial causes itself count as its worker's end", "[orchestrator]") {
  const auto end_of = [](const char* state, int code = 0, int signal = 0) {
    return worker_end("7_1", {state, code, signal});
  };
  CHECK(std::get<Exited>(end_of("COMPLETED").how).code == 0);
  CHECK(std::get<Exited>(end_of("FAILED", 3).how).code == 3);
  CHECK(std::get<Killed>(end_of("FAILED", 0, 9).how).signal == 9);
  CHECK(std::get<Killed>(end_of("OUT_OF_MEMORY").how).signal == SIGKILL);
  CHECK(end_of("OUT_OF_MEMORY").last_lines == "Slurm job 7_1: out of memory");
  CHECK(to_string(end_of("CANCELLED by 0")) == "Slurm job 7_1 was cancelled");
  CHECK(to_string(end_of("PREEMPTED")) == "Slurm job 7_1 was preempted");
  CHECK(to_string(end_of("NODE_FAIL")) == "Slurm job 7_1 lost its node");
  CHECK(to_string(end_of("TIMEOUT")) == "Slurm job 7_1 reached its time limit (--slurm-time)");
  CHECK(std::holds_alternative<TakenAway>(end_of("NODE_FAIL").how));
  CHECK(to_string(end_of("BOOT_FAIL")) == "Slurm job 7_1 lost its node");
  CHECK(to_string(end_of("RECONFIG_FAIL")) == "Slurm job 7_1 lost its node");
  CHECK(to_string(end_of("REVOKED")) == "Slurm job 7_1 was revoked");
  CHECK(to_string(end_of("LAUNCH_FAILED")) == "Slurm job 7_1 was not launched by Slurm");
  CHECK(to_string(end_of("DEADLINE")) == "Slurm job 7_1 reached its deadline (--slurm-time)");
  for (const char* taken :
       {"CANCELLED", "PREEMPTED", "BOOT_FAIL", "RECONFIG_FAIL", "REVOKED", "LAUNCH_FAILED"}) {
    INFO(taken);
    CHECK(std::holds_alternative<TakenAway>(end_of(taken, 1, 9).how));
  }
  CHECK(std::holds_alternative<OutOfTime>(end_of("DEADLINE", 1, 15).how));
  CHECK(std::holds_alternative<OutOfTime>(end_of("TIMEOUT").how));
}

TEST_CASE("A time limit has the format of sbatch", "[orchestrator]") {
  for (const char* good : {"30", "30:00", "2:30:00", "1-12", "1-12:30", "1-12:30:00"}) {
    CHECK(is_slurm_time(good));
  }
  for (const char* bad : {"", "2h", "1-", "-12", "1:2:3:4", "90m", "1-2-3", ":30", "30:"}) {
    INFO(bad);
    CHECK_FALSE(is_slurm_time(bad));
  }
}

TEST_CASE("Arguments of sbatch that petlab sets itself are refused", "[orchestrator]") {
  SlurmOptions options;
  options.arguments = {"--mem=8G", "-x", "--requeue", "--exclude=n1"};
  options.time = "1-0";
  CHECK_NOTHROW(check_slurm_options(options));
  options.arguments = {"--array=0-3"};
  CHECK(message_of([&] { check_slurm_options(options); }) ==
        "--slurm-arg is '--array=0-3', which petlab sets itself");
  options.arguments = {"-Jname"};
  CHECK(message_of([&] { check_slurm_options(options); }) ==
        "--slurm-arg is '-Jname', which petlab sets itself");
  options.arguments = {"8G"};
  CHECK(message_of([&] { check_slurm_options(options); }) ==
        "--slurm-arg is '8G', must be one word starting with -, such as --mem=8G");
  options.arguments = {};
  options.poll = std::chrono::milliseconds(99);
  CHECK(message_of([&] { check_slurm_options(options); }) == "--slurm-poll must be at least 100ms");
  options.poll = std::chrono::seconds(5);
  options.time = "2h";
  CHECK(message_of([&] { check_slurm_options(options); }) ==
        "--slurm-time is '2h', must be in sbatch's format: minutes, hours:minutes:seconds or "
        "days-hours");
}
