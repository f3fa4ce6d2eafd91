// Which jobs the Slurm launcher submits, and in which order. Slurm's programs are scripts here.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/slurm/jobs.h"
#include "orchestrator/slurm/launcher.h"
#include "tests/support/broken_invariant.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

/// A cluster that refuses the first `refusals` submissions and accepts all others. The file
/// `handed` has a line for each submission with its number of tasks.
class FakeSlurm {
 public:
  explicit FakeSlurm(int refusals, const std::string& refusal) : before_(::getenv("PATH")) {
    const std::string bin = (folder.path() / "bin").string();
    limits(1001, 10000);
    program("scontrol",
            fmt::format("echo \"$*\" >> {0}/asked\ncat {0}/limits\n", folder.path().string()));
    // Its answer shows the queue at its start, and comes once there is no file `hold`.
    program("squeue", fmt::format("cat {0}/queue 2>/dev/null\ntouch {0}/polled\n"
                                  "echo >> {0}/polls\n"
                                  "while [ -e {0}/hold ]; do sleep 0.01; done\n",
                                  folder.path().string()));
    program("scancel", fmt::format("echo \"$*\" >> {}/cancelled\n", folder.path().string()));
    program("sacct", "\n");
    // The last argument is the submission's script, which is next to its number of tasks.
    program("sbatch", fmt::format(R"(for word; do last=$word; done
read tasks of_job < "$(dirname "$last")/tasks"
echo $tasks >> {0}/handed
echo "$*" >> {0}/words
n=$(wc -l < {0}/handed)
if [ $n -le {1} ]; then echo '{2}' >&2; exit 1; fi
echo $((100 + n))
)",
                                  folder.path().string(), refusals, refusal));
    ::setenv("PATH", (bin + ":" + before_).c_str(), 1);
  }
  ~FakeSlurm() { ::setenv("PATH", before_.c_str(), 1); }
  void limits(int array_size, int job_count) const {
    folder.write("limits",
                 fmt::format("MaxArraySize = {}\nMaxJobCount = {}\n", array_size, job_count));
  }
  /// What squeue prints from now on.
  void queue(const std::string& text) const {
    folder.write("queue.new", text);
    fs::rename(folder.path() / "queue.new", folder.path() / "queue");
  }
  Lines lines(const std::string& name) const {
    std::istringstream in(fs::exists(folder.path() / name)
                              ? testing::read_file(folder.path() / name)
                              : std::string());
    Lines all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  testing::TempDir folder;

 private:
  void program(const std::string& name, const std::string& text) {
    const fs::path file = folder.write("bin/" + name, "#!/bin/sh\n" + text);
    fs::permissions(file, fs::perms::owner_all);
  }
  const std::string before_;
};

/// A launcher, its workers and their loop.
struct SlurmRun {
  FakeSlurm slurm;
  boost::asio::io_context loop;
  SlurmOptions options;
  std::unique_ptr<Launcher> launcher;
  std::vector<std::unique_ptr<Worker>> workers;
  Lines notes;
  Lines ended;

  explicit SlurmRun(int refusals, const std::string& refusal = kTooMany)
      : slurm(refusals, refusal) {
    options.runs = slurm.folder.path() / "runs";
    fs::create_directories(options.runs);
    options.owner = "1-2-test";
    options.sweep = "s";
    options.worker.program = "/bin/true";
    options.poll = std::chrono::milliseconds(100);
    options.note = [this](const std::string& line) { notes.push_back(line); };
  }
  void start(int count) {
    launcher = make_slurm_launcher(loop, options);
    start_more(count);
  }
  void start_more(int count) {
    const int first = static_cast<int>(workers.size());
    for (int i = first; i < first + count; ++i) {
      const std::string slot = *launcher->acquire_slot(1);
      workers.push_back(launcher->start(slot, {}, [this, i](const WorkerEnd& end) {
        ended.push_back(fmt::format("{}: {}", i, to_string(end)));
      }));
    }
    launcher->queue()->flush();
  }
  /// The number of workers that have a job.
  std::size_t launched() const {
    return static_cast<std::size_t>(
        std::count_if(workers.begin(), workers.end(),
                      [](const auto& worker) { return worker && !worker->launch().job.empty(); }));
  }
  /// Runs the loop until the condition holds; it must within 20 s.
  template <typename Condition>
  void until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.restart();
      loop.run_one_for(std::chrono::milliseconds(20));
    }
  }
  static constexpr const char* kTooMany =
      "sbatch: error: AssocMaxSubmitJobLimit sbatch: error: Batch job submission failed: Job "
      "violates accounting/QOS policy (job submit limit)";
};

}  // namespace

TEST_CASE("A Slurm job changes state as its table allows, and gets attempts while it runs",
          "[invariants]") {
  SlurmRun jobs(0);
  jobs.start(1);
  auto& job = static_cast<SlurmJob&>(*jobs.workers.front());
  CHECK(testing::broken_invariant([&] {
          job.become(SlurmJob::At::over);
          job.become(SlurmJob::At::job);
        }) == "the job of slurm-0 goes from over to job");
  CHECK(testing::broken_invariant([&] { job.submit({"2"}); }) ==
        "the job of slurm-0 gets an attempt before Slurm has it");
  jobs.until([&] { return jobs.launched() == 1; });
  CHECK(testing::broken_invariant([&] {
          job.begin("n1");
          job.close();
          job.submit({"2"});
        }) == "the job of slurm-0 gets an attempt after its end");
}

TEST_CASE("A job that begins while squeue answers is not taken for a requeued one",
          "[orchestrator]") {
  SlurmRun jobs(0);
  jobs.slurm.folder.write("hold", "");
  jobs.slurm.queue("101_0|PENDING||None|1:00|petlab.1-2-test.1\n");
  jobs.start(1);
  Worker& job = *jobs.workers.front();
  jobs.until([&] { return fs::exists(jobs.slurm.folder.path() / "polled"); });
  jobs.slurm.folder.write(
      "runs/.slurm/petlab.1-2-test.1/0.jsonl",
      "{\"v\":1,\"type\":\"began\",\"time\":1,\"job\":\"101_0\",\"restarts\":0,\"host\":\"n1\"}\n");
  jobs.until([&] { return !job.waits(); });
  fs::remove(jobs.slurm.folder.path() / "polled");
  fs::remove(jobs.slurm.folder.path() / "hold");
  // Until the answer of the next poll, which does know better.
  jobs.slurm.queue("101_0|RUNNING|n1|None|1:00|petlab.1-2-test.1\n");
  jobs.until([&] { return job.ends_by().has_value(); });
  CHECK_FALSE(job.waits());
  CHECK(jobs.ended.empty());
  CHECK(jobs.slurm.lines("cancelled").empty());
}

TEST_CASE("Refused jobs are submitted again in order, in smaller arrays", "[orchestrator]") {
  SlurmRun jobs(2);
  jobs.start(9);
  jobs.until([&] { return jobs.launched() == 9; });
  const Lines handed = jobs.slurm.lines("handed");
  REQUIRE(handed.size() >= 4);
  CHECK(handed[0] == "9");
  CHECK(handed[1] == "4");
  CHECK(handed[2] == "2");
  // Arrays grow again once Slurm accepts one.
  CHECK(handed[3] == "4");
  CHECK(handed.back() == "3");
  CHECK(jobs.notes.size() == 1);  // an equal refusal is reported once
  CHECK(jobs.ended.empty());
  for (std::size_t i = 0; i < 9; ++i) {
    const int array = i < 2 ? 103 : i < 6 ? 104 : 105;
    const std::size_t task = i < 2 ? i : i < 6 ? i - 2 : i - 6;
    CHECK(jobs.workers[i]->launch().job == fmt::format("{}_{}", array, task));
  }
}

TEST_CASE("A job stopped while refused is not submitted again", "[orchestrator]") {
  SlurmRun jobs(1);
  jobs.start(4);
  jobs.until([&] { return jobs.slurm.lines("handed").size() == 1; });
  jobs.workers[1]->stop();
  jobs.until([&] { return jobs.launched() == 3 && jobs.ended.size() == 1; });
  CHECK(jobs.ended == Lines{"1: withdrawn before it was submitted to Slurm"});
  const Lines handed = jobs.slurm.lines("handed");
  int all = 0;
  for (std::size_t i = 1; i < handed.size(); ++i) all += std::stoi(handed[i]);
  CHECK(all == 3);
  CHECK(jobs.workers[1]->launch().job.empty());
}

TEST_CASE("Arrays are no larger than Slurm allows", "[orchestrator]") {
  const auto handed = [](int array_size, int job_count, int jobs) {
    SlurmRun run(0);
    run.slurm.limits(array_size, job_count);
    run.start(jobs);
    run.until([&] { return run.launched() == static_cast<std::size_t>(jobs); });
    return run.slurm.lines("handed");
  };
  CHECK(handed(3, 10000, 7) == Lines{"3", "3", "1"});
  CHECK(handed(3, 10000, 3) == Lines{"3"});
  CHECK(handed(1001, 8, 7) == Lines{"4", "3"});
  // A cluster without arrays.
  SlurmRun run(0);
  run.slurm.limits(0, 10000);
  run.start(2);
  run.until([&] { return run.launched() == 2; });
  CHECK(run.slurm.lines("handed") == Lines{"1", "1"});
  CHECK(run.slurm.lines("words").at(0).find("--array") == std::string::npos);
  CHECK(run.workers[0]->launch().job == "101");
  CHECK(run.workers[1]->launch().job == "102");
}

TEST_CASE("Several workers share a job that has a whole node", "[orchestrator]") {
  SlurmRun run(0);
  run.options.node_workers = 2;
  run.options.gpus = "a100:1";
  run.options.threads = 3;
  const auto log = [&run](int worker, const std::string& line) {
    run.slurm.folder.write(fmt::format("runs/.slurm/petlab.1-2-test.1/{}.jsonl", worker), line);
  };
  const std::string began =
      R"({"v":1,"type":"began","time":1,"job":"101_0","host":"n1","step":"4"})"
      "\n";
  const std::string ended = began + R"({"v":1,"type":"ended","time":2,"exit_code":5})" + "\n";
  run.slurm.queue("101_0|PENDING||None|1:00|petlab.1-2-test.1\n");
  run.start(5);
  run.until([&] { return run.launched() == 5; });
  CHECK(run.slurm.lines("handed") == Lines{"5"});
  const std::string words = run.slurm.lines("words").at(0);
  CHECK(
      words.starts_with("--nodes=1 --ntasks=2 --cpus-per-task=3 --exclusive "
                        "--gres=gpu:a100:2 "));
  CHECK(words.find(" --array=0-2 ") != std::string::npos);
  for (int i = 0; i < 5; ++i) {
    CHECK(run.workers[i]->launch().job == fmt::format("101_{}", i / 2));
  }
  SECTION("a waiting job stays while one of its workers is needed") {
    run.workers[2]->kill();
    run.until([&] { return !run.ended.empty(); });
    CHECK(run.ended == Lines{"2: withdrawn before its worker began"});
    CHECK(run.slurm.lines("cancelled").empty());
    CHECK(read_job_log(TaskFiles(run.options.runs, "petlab.1-2-test.1", 2).record)->withdrawn);
    run.workers[3]->kill();
    run.until([&] { return !run.slurm.lines("cancelled").empty(); });
    CHECK(run.slurm.lines("cancelled").at(0) == "101_1");
  }
  SECTION("a running worker is stopped by its step, and ends before its job") {
    run.slurm.queue("101_0|RUNNING|n1|None|1:00|petlab.1-2-test.1\n");
    log(0, began);
    run.until([&] { return !run.workers[0]->waits() && run.workers[0]->ends_by(); });
    CHECK(run.workers[1]->waits());  // its step has not begun
    run.workers[0]->stop();
    run.until([&] { return !run.slurm.lines("cancelled").empty(); });
    CHECK(run.slurm.lines("cancelled").at(0) == "--signal=TERM 101_0.4");
    log(1, began);
    run.until([&] { return !run.workers[1]->waits(); });
    // If the job ends, its end tells why.
    run.slurm.queue("101_0|COMPLETING|n1|None|1:00|petlab.1-2-test.1\n");
    log(1, ended);
    run.slurm.folder.write("runs/.slurm/petlab.1-2-test.1/1.over", "");
    const std::size_t polls = run.slurm.lines("polls").size();
    run.until([&] { return run.slurm.lines("polls").size() > polls + 2; });
    CHECK(run.ended.empty());
    run.slurm.queue("101_0|RUNNING|n1|None|1:00|petlab.1-2-test.1\n");
    run.until([&] { return !run.ended.empty(); });
    CHECK(run.ended == Lines{"1: exit code 5"});
    // While another worker runs, the next job waits until it has all of its workers.
    log(2, R"({"v":1,"type":"began","time":1,"job":"101_1","host":"n2","step":"0"})"
           "\n");
    run.until([&] { return !run.workers[2]->waits(); });
    run.start_more(1);
    const std::size_t later = run.slurm.lines("polls").size();
    run.until([&] { return run.slurm.lines("polls").size() > later + 2; });
    CHECK(run.slurm.lines("handed") == Lines{"5"});
    // Workers with another number of GPUs do not wait behind it.
    run.workers.push_back(
        run.launcher->start(*run.launcher->acquire_slot(2), {}, [](const WorkerEnd&) {}));
    run.launcher->queue()->flush();
    run.until([&] { return run.slurm.lines("handed").size() > 1; });
    CHECK(run.slurm.lines("handed") == Lines{"5", "1"});
    run.start_more(2);
    run.until([&] { return run.slurm.lines("handed").size() > 2; });
    CHECK(run.slurm.lines("handed") == Lines{"5", "1", "2"});
  }
  SECTION("a job has the rest of the workers if no other takes more trials") {
    run.slurm.queue("101_0|RUNNING|n1|None|1:00|petlab.1-2-test.1\n");
    log(0, began);
    run.until([&] { return !run.workers[0]->waits(); });
    run.workers[0]->close();
    run.start_more(1);
    run.until([&] { return run.slurm.lines("handed").size() > 1; });
    CHECK(run.slurm.lines("handed") == Lines{"5", "1"});
  }
}

TEST_CASE("Jobs of trials with several GPUs ask for them", "[orchestrator]") {
  const auto gres = [](const std::string& option, int workers) {
    SlurmRun run(0);
    run.options.gpus = option;
    run.options.node_workers = workers;
    run.start(2);
    for (const int gpus : {2, 2, 4}) {
      const std::string slot = *run.launcher->acquire_slot(gpus);
      CHECK(run.launcher->device(slot).kind == "cuda");
      run.workers.push_back(run.launcher->start(slot, {}, [](const WorkerEnd&) {}));
    }
    run.launcher->queue()->flush();
    run.until([&] { return run.launched() == 5; });
    Lines all;
    for (const std::string& words : run.slurm.lines("words")) {
      const std::size_t at = words.find("--gres=");
      all.push_back(at == words.npos ? "" : words.substr(at + 7, words.find(' ', at) - at - 7));
    }
    return all;
  };
  CHECK(gres("", 0) == Lines{"", "gpu:2", "gpu:4"});
  CHECK(gres("1", 0) == Lines{"gpu:1", "gpu:2", "gpu:4"});
  CHECK(gres("a100", 0) == Lines{"gpu:a100:1", "gpu:a100:2", "gpu:a100:4"});
  // A type may begin with a digit.
  CHECK(gres("2080ti", 0) == Lines{"gpu:2080ti:1", "gpu:2080ti:2", "gpu:2080ti:4"});
  CHECK(gres("3g.20gb:1", 0) == Lines{"gpu:3g.20gb:1", "gpu:3g.20gb:2", "gpu:3g.20gb:4"});
  // A job never has more GPUs than its workers would have with one each.
  CHECK(gres("a100:1", 4) == Lines{"gpu:a100:4", "gpu:a100:4", "gpu:a100:4"});
  CHECK(gres("1", 2) == Lines{"gpu:2", "gpu:2", "gpu:4"});
}

TEST_CASE("An adopted job is followed by the number that it recorded", "[orchestrator]") {
  SlurmRun run(0);
  run.slurm.queue("77_1|RUNNING|n1|None|1:00:00|petlab.1-2-old.1\n");
  run.start(0);
  JobScript script;
  script.worker = run.options.worker;
  write_submission(run.options.runs, {"petlab.1-2-old.1", 2}, script);
  write_number(run.options.runs, "petlab.1-2-old.1", "77");
  const TaskFiles files(run.options.runs, "petlab.1-2-old.1", 1);
  append_to_inbox(files.inbox, (run.options.runs / "t0" / "1").string());
  const std::vector<LeftJob> left = run.launcher->queue()->take_left("1-2-old");
  REQUIRE(left.size() == 1);
  const std::unique_ptr<Worker> worker =
      run.launcher->queue()->adopt("slurm-0", left.front(), [](const WorkerEnd&) {});
  CHECK(worker->waits());
  run.until([&] { return !worker->waits(); });
  REQUIRE(worker->ends_by());
  const auto remaining = *worker->ends_by() - std::chrono::steady_clock::now();
  CHECK(remaining > std::chrono::minutes(59));
  CHECK(remaining <= std::chrono::minutes(60));
  CHECK(worker->launch().job == "77_1");
  CHECK(worker->launch().host == "n1");
  CHECK(run.slurm.lines("handed").empty());
  run.slurm.queue("77_1|SUSPENDED|n1|None|1:00:00|petlab.1-2-old.1\n");
  run.until([&] { return worker->suspended(); });
  CHECK(worker->waits());
  run.slurm.queue("77_1|RUNNING|n1|None|59:51|petlab.1-2-old.1\n");
  run.until([&] { return !worker->waits(); });
  CHECK_FALSE(worker->suspended());
}

TEST_CASE("A job takes attempts as soon as it has recorded its begin", "[orchestrator]") {
  SlurmRun run(0);
  run.options.poll = std::chrono::minutes(10);
  run.start(2);
  run.until([&] { return run.launched() == 2; });
  CHECK(run.workers[1]->waits());
  run.slurm.folder.write("runs/.slurm/petlab.1-2-test.1/1.jsonl",
                         R"({"v":1,"type":"began","time":1,"job":"101_1","host":"n3"})"
                         "\n");
  run.until([&] { return !run.workers[1]->waits(); });
  CHECK(run.workers[0]->waits());
  CHECK(run.workers[1]->launch().host == "n3");
  run.workers[1]->submit({"/a/1"});
  run.workers[1]->close();
  CHECK(testing::read_file(run.options.runs / ".slurm/petlab.1-2-test.1/1.inbox") == "/a/1\nend\n");
}

TEST_CASE("All commands go to the chosen cluster, which the next run must choose too",
          "[orchestrator]") {
  SlurmRun run(0);
  run.options.cluster = "big";
  run.slurm.queue("CLUSTER: big\n");
  run.start(1);
  run.until([&] { return run.launched() == 1; });
  CHECK(run.slurm.lines("words").at(0).starts_with("--clusters=big --nodes=1 "));
  CHECK(run.slurm.lines("asked").at(0) == "--clusters=big show config");
  const TaskFiles files(run.options.runs, "petlab.1-2-test.1", 0);
  append_to_inbox(files.inbox, "/a/1");
  CHECK(run.launcher->queue()->take_left("1-2-test").size() == 1);
  run.options.cluster.clear();
  const auto other = make_slurm_launcher(run.loop, run.options);
  CHECK_THROWS_WITH(other->queue()->take_left("1-2-test"),
                    "the jobs of the dead petlab run 1-2-test are in Slurm's cluster big; run with "
                    "--slurm-arg=--clusters=big");
}

TEST_CASE("The cluster is an argument of sbatch, or in Slurm's variables", "[orchestrator]") {
  const auto chosen = [](std::vector<std::string> arguments, const std::string& variable,
                         const std::string& value) {
    SlurmOptions options;
    options.arguments = std::move(arguments);
    choose_cluster(options, [&](const char* name) {
      return name == variable ? std::optional(value) : std::nullopt;
    });
    for (const std::string& word : options.arguments) CHECK(word == "--mem=8G");
    return options.cluster;
  };
  CHECK(chosen({"--mem=8G"}, "", "").empty());
  CHECK(chosen({"--clusters=a", "--mem=8G"}, "SLURM_CLUSTERS", "b") == "a");
  CHECK(chosen({"-Ma"}, "", "") == "a");
  CHECK(chosen({"-M=a"}, "", "") == "a");
  CHECK(chosen({}, "SLURM_CLUSTERS", "b") == "b");
  CHECK(chosen({}, "SBATCH_CLUSTERS", "b") == "b");
  CHECK_THROWS_WITH(chosen({"--clusters=a,b"}, "", ""),
                    "--slurm-arg names the clusters 'a,b', must be one cluster: petlab follows its "
                    "jobs in one");
  CHECK_THROWS_WITH(chosen({}, "SLURM_CLUSTERS", "all"),
                    "SLURM_CLUSTERS names the clusters 'all', must be one cluster: petlab follows "
                    "its jobs in one");
  CHECK_THROWS_AS(chosen({"--clusters"}, "", ""), std::invalid_argument);
}

TEST_CASE("A permanent refusal ends all jobs of the submission in order", "[orchestrator]") {
  SlurmRun jobs(1, "sbatch: error: invalid partition specified: nope");
  jobs.start(3);
  jobs.until([&] { return jobs.ended.size() == 3; });
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(jobs.ended[i].starts_with(fmt::format("{}: ", i)));
    CHECK(jobs.ended[i].find("invalid partition specified: nope") != std::string::npos);
  }
  CHECK(jobs.slurm.lines("handed").size() == 1);
}

TEST_CASE("No job runs on a disabled host, not even one that waits already", "[orchestrator]") {
  SlurmRun run(0);
  run.options.arguments = {"--exclude=n8", "-xn9", "--mem=8G"};
  run.start(2);
  run.until([&] { return run.launched() == 2; });
  const auto asked = [&](const std::string& words) {
    const Lines lines = run.slurm.lines("asked");
    return std::count(lines.begin(), lines.end(), words);
  };
  run.launcher->use_device("n2", DeviceUse::never, 3);
  run.launcher->use_device("n2", DeviceUse::never, 3);
  run.until([&] { return asked("update JobId=101 ExcNodeList=n8,n9,n2") > 0; });
  run.start_more(1);
  run.until([&] { return run.launched() == 3; });
  run.launcher->use_device("n2", DeviceUse::last, 1);
  run.until([&] { return asked("update JobId=102 ExcNodeList=n8,n9") > 0; });
  run.start_more(1);
  run.until([&] { return run.launched() == 4; });
  CHECK(asked("update JobId=101 ExcNodeList=n8,n9,n2") == 1);
  const Lines words = run.slurm.lines("words");
  REQUIRE(words.size() == 3);
  const std::string of_user = "--exclude=n8 -xn9 --mem=8G ";
  CHECK(words[0].find(of_user + "--array") != std::string::npos);
  CHECK(words[1].find(of_user + "--exclude=n8,n9,n2 --array") != std::string::npos);
  CHECK(words[2].find(of_user + "--array") != std::string::npos);
}

TEST_CASE("Each Slurm option becomes an argument of sbatch", "[orchestrator]") {
  const auto words = [](const SlurmRun& jobs) {
    return " " + jobs.slurm.lines("words").at(0) + " ";
  };
  SlurmRun plain(0);
  plain.start(1);
  plain.until([&] { return plain.launched() == 1; });
  for (const char* option : {"--partition", "--account", "--gres", "--time", "--mem"}) {
    CHECK(words(plain).find(option) == std::string::npos);
  }
  CHECK(words(plain).find(" --cpus-per-task=1 ") != std::string::npos);
  CHECK(plain.launcher->device("slurm-0").kind == "cpu");
  SlurmRun all(0);
  all.options.partition = "long";
  all.options.account = "lab";
  all.options.gpus = "a100:2";
  all.options.time = "1-00:00:00";
  all.options.arguments = {"--mem=8G", "--exclusive"};
  all.options.threads = 5;
  all.start(1);
  all.until([&] { return all.launched() == 1; });
  for (const char* option :
       {" --partition=long ", " --account=lab ", " --gres=gpu:a100:2 ", " --time=1-00:00:00 ",
        " --mem=8G ", " --exclusive ", " --cpus-per-task=5 "}) {
    INFO(words(all));
    CHECK(words(all).find(option) != std::string::npos);
  }
  CHECK(all.launcher->device("slurm-0").kind == "cuda");
}

}  // namespace petlab::orchestrator
