// Runs petlab's orchestrators in a simulated world, from a seed.
//
// Each seed makes a world: a sweep of one to six trials, up to five orchestrators that share a
// database and a runs folder, their workers, and a fate. For up to half a simulated minute,
// orchestrators begin, stand still, get signals and die, wherever they wait and at every fault
// point, where a write may also fail; workers crash, hang, exit early, ignore signals and outlive
// SIGKILL; the power is cut; a user cancels, retries, reruns, discards and hides trials; and a rule
// of the sweep stops losers early, which a later run continues. Then fate rests, and what is left
// must complete. petlab's Run, Store, Recovery and files are real; time, processes and signals are
// simulated (simulated_world.h), so that a seed takes milliseconds and always does the same.
//
// Checked after each step that wrote to the database: a trial has at most one open attempt, and at
// most one result that counts; an attempt that is over stays as it ended. Checked by the workers:
// no two train a trial at the same time, and none is killed while it stops in time. Checked at the
// end: every trial is done, or failed if it always fails; results equal those of an undisturbed run
// to the last digit, in a rebuilt database too; no lock (a living worker would hold one) and no
// incomplete folder is left. A broken invariant of petlab also fails the seed.
//
//   simulation --seeds 1000            seeds 1 to 1000
//   simulation --first 17 --seeds 1    one seed, with the last lines of its story
//   simulation --first 17 --seeds 1 --trials 1 --without power,user
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/file_descriptor.h"
#include "tests/simulation/simulation.h"

namespace {

namespace fs = std::filesystem;
using namespace petlab;
using namespace petlab::testing;

class Runner {
 public:
  explicit Runner(const fs::path& folder) : folder_(folder), sweeps_(folder / "sweeps") {}

  Story run(const Plan& plan, Tally& tally) const {
    return simulate(plan, sweeps_, folder_ / fmt::format("seed-{}", plan.seed), tally);
  }

  // The simplest plan that still fails.
  Plan shrink(Plan plan) const {
    const auto keep_if_it_fails = [&](const auto& simplify) {
      Plan simpler = plan;
      simplify(simpler);
      Tally ignored;
      const bool fails = !run(simpler, ignored).fault.empty();
      if (fails) plan = simpler;
      return fails;
    };
    for (std::size_t trials = 1; trials < kMostTrials; ++trials) {
      if (keep_if_it_fails([&](Plan& simpler) { simpler.trials = trials; })) break;
    }
    for (std::size_t count = 1; count < kMostOrchestrators; ++count) {
      if (keep_if_it_fails([&](Plan& simpler) { simpler.orchestrators = count; })) break;
    }
    for (const std::string& kind : disturbances()) {
      keep_if_it_fails([&](Plan& simpler) { simpler.without.insert(kind); });
    }
    return plan;
  }

 private:
  fs::path folder_;
  SimulatedSweeps sweeps_;
};

std::string words_of(const Plan& plan) {
  std::string words = fmt::format("--first {} --seeds 1", plan.seed);
  if (plan.trials > 0) words += fmt::format(" --trials {}", plan.trials);
  if (plan.orchestrators > 0) words += fmt::format(" --orchestrators {}", plan.orchestrators);
  if (!plan.without.empty()) words += fmt::format(" --without {}", fmt::join(plan.without, ","));
  return words;
}

// Runs every `jobs`-th seed, from `first`. Prints the first failure, and a seed that is alone.
bool run_share(const fs::path& folder, const Plan& first, std::uint64_t seeds, std::uint64_t job,
               std::uint64_t jobs, Tally& tally) {
  const Runner runner(folder);
  if (seeds == 1) {
    const Story story = runner.run(first, tally);
    std::cout << story.lines << std::flush;
    return story.fault.empty();
  }
  for (std::uint64_t at = job; at < seeds; at += jobs) {
    Plan plan = first;
    plan.seed += at;
    const Story story = runner.run(plan, tally);
    if (story.fault.empty()) continue;
    const Plan simplest = runner.shrink(plan);
    Tally ignored;
    const Story last = runner.run(simplest, ignored);
    std::cout << fmt::format("seed {}: {}\nsimulation {}: {}\n{}", plan.seed, story.fault,
                             words_of(simplest), last.fault, last.lines)
              << std::flush;
    return false;
  }
  return true;
}

nlohmann::json to_json(const Tally& tally) { return {tally.hours, tally.counts}; }
Tally tally_from(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {json.at(0), json.at(1).get<std::map<std::string, std::int64_t>>()};
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  std::uint64_t seeds = 1000;
  std::uint64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  fs::path folder = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  std::vector<std::string> without;
  CLI::App app("Runs petlab's orchestrators in a simulated world");
  app.add_option("--first", plan.seed, "the first seed");
  app.add_option("--seeds", seeds, "how many seeds");
  app.add_option("--jobs", jobs, "processes at once");
  app.add_option("--trials", plan.trials, "trials of each sweep, 1 to 6; 0: by the seed");
  app.add_option("--orchestrators", plan.orchestrators, "the most at once; 0: by the seed");
  app.add_option("--without", without,
                 "disturbances to leave out: " + fmt::format("{}", fmt::join(disturbances(), ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(disturbances()));
  app.add_option("--folder", folder, "where to work");
  CLI11_PARSE(app, argc, argv);
  plan.without = {without.begin(), without.end()};
  folder /= fmt::format("petlab-simulation-{}", ::getpid());
  jobs = std::min(jobs, seeds);
  const auto began = std::chrono::steady_clock::now();
  Tally tally;
  bool good = true;
  std::vector<std::pair<pid_t, int>> children;
  for (std::uint64_t job = 0; job < jobs; ++job) {
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Tally mine;
      bool fine = false;
      try {
        fine = run_share(folder / fmt::format("{}", job), plan, seeds, job, jobs, mine);
      } catch (const std::exception& error) {
        std::cout << "simulation: " << error.what() << std::endl;
      }
      const bool sent = base::write_all(ends[1], to_json(mine).dump());
      ::_exit(fine && sent ? 0 : 1);
    }
    ::close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  for (const auto& [child, end] : children) {
    std::string theirs;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(end, buffer.data(), buffer.size())) > 0;) {
      theirs.append(buffer.data(), static_cast<std::size_t>(got));
    }
    if (!theirs.empty()) tally.add(tally_from(theirs));
    int status = 0;
    ::waitpid(child, &status, 0);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  fs::remove_all(folder);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const auto& [what, count] : tally.counts)
    std::cout << fmt::format("{:>9} {}\n", count, what);
  std::cout << fmt::format(
      "{} seeds in {:.1f} s: {:.1f} simulated hours, {:.0f} steps a second: {}\n", tally["seeds"],
      seconds, tally.hours, static_cast<double>(tally["steps"]) / seconds,
      good ? "0 failures" : "FAILED");
  return good ? 0 : 1;
}
