// Explores every interleaving of two orchestrators over two trials. A small state machine models
// what an orchestrator does to a claim, and each state is visited once. Database contents come from
// a real database; directories, locks and workers are flags, so no processes or files are needed.
//
// The machine, its steps and its invariants form one argument, so they are in one source file.
//
// A step is atomic: a transaction, a test of a lock or one file call.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/planning/plan.h"
#include "tests/orchestrator/claim_databases.h"
#include "tests/support/catch.h"

namespace petlab::orchestrator {
namespace {

using results::AttemptFacts;
using results::Outcome;
using sweeps::TrialState;

using testing::Databases;
using testing::kTrials;
using testing::Write;

// Owner 0 died earlier, owners 1 and 2 start together, and owner 3 starts after one of them dies.
constexpr int kOwners = 4;
constexpr int kFormer = 0;
constexpr int kNumbers = 8;  // attempt numbers of a trial; more than any interleaving uses

// --- One state of the world. It has no padding, so equal states are equal memory.

enum Life : std::int8_t { unborn, alive, dead, gone };
// Two moments of each trial's stop: between its file and its commit, and before its post is
// removed.
enum Doing : std::int8_t {
  reading,
  recovering,
  planning,
  looping,
  stopping,
  cleaning = stopping + kTrials
};
enum Standing : std::int8_t { unplanned, waiting, elsewhere, claimed, prepared, launched, settled };

/// An attempt's files and process.
struct Files {
  std::int8_t owner;
  std::int8_t directory;  // exists
  std::int8_t worker;     // alive
  std::int8_t finished;   // according to its events
};

struct Orchestrator {
  std::int16_t snapshot;  // the database state that it read and has not yet planned from
  std::int8_t life;
  std::int8_t doing;
  std::int8_t next;  // the next owner that its recovery checks
  std::int8_t held;  // 1 + the dead owner whose lock it holds; 0: none
  std::int8_t started;
  std::int8_t cleared;  // its files were removed after its death
  std::int8_t reruns;   // it reruns the results that exist when it starts
  std::int8_t decided;  // bits: trials whose rerun it has recorded
  std::array<std::int8_t, kTrials> standing;
  std::array<std::int8_t, kTrials> number;
  std::array<std::int8_t, kTrials> planned_from;
};

struct World {
  std::int16_t database;
  std::int8_t deaths_left;
  std::int8_t returns_left;
  std::int8_t stops_left;
  std::int8_t posts;                         // bits: trials with a post in the inbox
  std::array<std::int8_t, kTrials> stopped;  // the attempt that its decisions' file stops; 0: none
  std::array<std::int8_t, kTrials> claimed_although_stopped;
  std::array<Orchestrator, kOwners> owners;
  std::array<std::int8_t, kTrials> rerun_bits;  // bits: attempts whose results are to be rerun
  std::array<std::array<Files, kNumbers>, kTrials> files;
};
static_assert(std::has_unique_object_representations_v<World>);

bool operator==(const World& a, const World& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
struct Hash {
  std::size_t operator()(const World& world) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(&world), sizeof world});
  }
};

/// How far the former orchestrator had come with a trial when it died.
enum class Left { nothing, claim, directory, begun, finished };

class Explorer {
 public:
  // Returns an empty string if every interleaving is correct, else the problem and the steps that
  // lead to it. At any moment up to `deaths` of the two orchestrators die, up to `returns` claims
  // are given back and up to `stops` trials are stopped early. `reruns` of the two orchestrators
  // run with --rerun all. With `gangs`, a worker trains the trials that wait together.
  std::string explore(const std::array<Left, kTrials>& left, int deaths, int returns,
                      int reruns = 0, int stops = 0, bool gangs = false) {
    gangs_ = gangs;
    World world;
    std::memset(&world, 0, sizeof world);
    world.deaths_left = static_cast<std::int8_t>(deaths);
    world.returns_left = static_cast<std::int8_t>(returns);
    world.stops_left = static_cast<std::int8_t>(stops);
    world.owners[kFormer].life = dead;
    world.owners[1].life = world.owners[2].life = alive;
    for (int owner = 1; owner <= reruns; ++owner) world.owners[owner].reruns = 1;
    for (int trial = 0; trial < kTrials; ++trial) {
      if (left[trial] == Left::nothing) continue;
      const Databases::Result claim =
          databases_.after(world.database, {Write::What::claim, trial, 1, kFormer, 0});
      world.database = static_cast<std::int16_t>(claim.state);
      Files& files = world.files[trial][claim.number];
      files.owner = kFormer;
      files.directory = left[trial] != Left::claim;
      files.worker = left[trial] == Left::begun;
      files.finished = left[trial] == Left::finished;
    }
    states_.clear();
    numbers_.clear();
    steps_.clear();
    add(world, 0);
    std::vector<std::size_t> ends;
    std::string problem;
    for (std::size_t at = 0; at < states_.size() && problem.empty(); ++at) {
      const World now = *states_[at].world;
      bool any = false;
      expand(now, [&](const auto&, const World& next) {
        any = true;
        steps_.emplace_back(add(next, at), at);
      });
      problem = any ? what_is_wrong(now) : what_is_wrong_at_the_end(now);
      if (!problem.empty()) problem += ":" + trace(at);
      if (!any) ends.push_back(at);
    }
    all_states_ += states_.size();
    return problem.empty() ? endless(ends) : problem;
  }

  std::size_t states() const { return all_states_; }
  std::size_t databases() const { return databases_.size(); }

 private:
  struct Seen {
    const World* world;
    std::size_t from;  // the state from which it was reached first
  };

  std::size_t add(const World& world, std::size_t from) {
    const auto [entry, fresh] = numbers_.try_emplace(world, states_.size());
    if (fresh) states_.push_back({&entry->first, from});
    return entry->second;
  }

  // The steps of the shortest path to a state.
  std::string trace(std::size_t to) {
    if (to == 0) return {};
    const std::size_t from = states_[to].from;
    const World before = *states_[from].world;
    std::string step;
    expand(before, [&](const auto& what, const World& next) {
      if (step.empty() && add(next, from) == to) step = "\n  " + what();
    });
    return trace(from) + step;
  }

  // Checks that every state leads to one of `reached`, the states where nothing is left to do.
  std::string endless(std::vector<std::size_t> reached) {
    std::sort(steps_.begin(), steps_.end());
    std::vector<bool> ends(states_.size());
    for (const std::size_t at : reached) ends[at] = true;
    while (!reached.empty()) {
      const std::size_t at = reached.back();
      reached.pop_back();
      for (auto step =
               std::lower_bound(steps_.begin(), steps_.end(), std::pair(at, std::size_t{0}));
           step != steps_.end() && step->first == at; ++step) {
        if (!ends[step->second]) reached.push_back(step->second);
        ends[step->second] = true;
      }
    }
    const auto found = std::find(ends.begin(), ends.end(), false);
    if (found == ends.end()) return {};
    return "this never comes to an end:" + trace(static_cast<std::size_t>(found - ends.begin()));
  }

  template <typename Step>
  void expand(const World& world, const Step& step) {
    for (int owner = 1; owner < kOwners; ++owner) steps_of(world, owner, step);
    for (int trial = 0; trial < kTrials; ++trial) {
      for (int number = 1; number < kNumbers; ++number) {
        if (!world.files[trial][number].worker) continue;
        World next = world;
        next.files[trial][number].worker = 0;
        next.files[trial][number].finished = 1;
        step([&] { return fmt::format("the worker of {}/{} finishes", trial, number); }, next);
        // It also ends if the guardian of its dead owner kills it, or its owner asks it to stop,
        // this trial alone or as a whole.
        const int owner = world.files[trial][number].owner;
        const bool is_killed = world.owners[owner].life == dead;
        if (!is_killed && !is_stopped(world, trial)) continue;
        next.files[trial][number].finished = 0;
        if (!gangs_ || !is_killed) {
          step([&] { return fmt::format("the worker of {}/{} ends early", trial, number); }, next);
        }
        if (!gangs_) continue;
        end_worker(next, owner);
        step([&] { return fmt::format("the worker of {}/{} ends with its gang", trial, number); },
             next);
      }
    }
  }

  template <typename Step>
  void steps_of(const World& world, int self, const Step& step) {
    const Orchestrator& me = world.owners[self];
    if (me.life == unborn) {
      // At most two run at the same time.
      if (world.owners[1].life != dead && world.owners[2].life != dead) return;
      World next = world;
      next.owners[self].life = alive;
      step([&] { return fmt::format("{} starts", self); }, next);
      return;
    }
    if (me.life != alive) return;
    if (world.deaths_left > 0) {
      World next = world;
      --next.deaths_left;
      kill(next, self);
      step([&] { return fmt::format("{} dies", self); }, next);
    }
    if (me.doing == reading && world.posts != 0) {
      World next = world;
      read_inbox(next);
      next.owners[self].doing = recovering;
      step([&] { return fmt::format("{} reads the inbox", self); }, next);
    } else if (me.doing <= recovering) {
      recover(world, self, step);
    } else if (me.doing == planning) {
      World next = world;
      const int trial = me.reruns && !me.started ? to_rerun(world, self) : -1;
      if (trial >= 0) {
        ask_again(next, self, trial);
        step([&] { return fmt::format("{} wants {} made again", self, trial); }, next);
        return;
      }
      plan_all(next, self);
      step([&] { return fmt::format("{} plans", self); }, next);
    } else if (me.doing == looping) {
      for (int trial = 0; trial < kTrials; ++trial) {
        work(world, self, trial, step);
        stop_early(world, self, trial, step);
      }
      look_or_end(world, self, step);
    } else {
      finish_stop(world, self, step);
    }
  }

  bool is_stopped(const World& world, int trial) const {
    return databases_.facts(world.database, trial).cancelled;
  }

  // Models log_decisions() of orchestrator/records/decide.cpp by a run whose rule stops a trial.
  template <typename Step>
  void stop_early(const World& world, int self, int trial, const Step& step) {
    const Orchestrator& me = world.owners[self];
    const int number = me.number[trial];
    if (world.stops_left == 0 || me.standing[trial] != launched ||
        world.files[trial][number].finished || is_stopped(world, trial))
      return;
    World next = world;
    --next.stops_left;
    next.posts |= static_cast<std::int8_t>(1 << trial);
    next.stopped[trial] = static_cast<std::int8_t>(number);
    next.owners[self].doing = static_cast<std::int8_t>(stopping + trial);
    step([&] { return fmt::format("{} writes that {}/{} is stopped", self, trial, number); }, next);
  }

  // Models the rest of the turn, which stores the decision and then removes its post.
  template <typename Step>
  void finish_stop(const World& world, int self, const Step& step) {
    World next = world;
    Orchestrator& me = next.owners[self];
    if (me.doing < cleaning) {
      const int trial = me.doing - stopping;
      write(next, {Write::What::stop_early, trial, world.stopped[trial], 0, 0});
      me.doing = static_cast<std::int8_t>(cleaning + trial);
      step([&] { return fmt::format("{} stops {}", self, trial); }, next);
      return;
    }
    next.posts &= static_cast<std::int8_t>(~(1 << (me.doing - cleaning)));
    me.doing = looping;
    step([&] { return fmt::format("{} removes its post", self); }, next);
  }

  // Models orchestrator/records/inbox.cpp.
  void read_inbox(World& world) {
    for (int trial = 0; trial < kTrials; ++trial) {
      if (!(world.posts & (1 << trial))) continue;
      write(world, {Write::What::stop_early, trial, world.stopped[trial], 0, 0});
    }
    world.posts = 0;
  }

  static void end_worker(World& world, int owner) {
    for (auto& files : world.files) {
      for (Files& attempt : files) {
        if (attempt.owner == owner) attempt.worker = 0;
      }
    }
  }

  static void kill(World& world, int owner) {
    std::memset(&world.owners[owner], 0, sizeof world.owners[owner]);
    world.owners[owner].life = dead;
  }

  static int owner_of(const AttemptFacts& attempt) { return attempt.begun.owner.at(0) - '0'; }

  static bool is_held(const World& world, int owner) {
    if (world.owners[owner].life == alive) return true;
    return std::any_of(world.owners.begin(), world.owners.end(),
                       [&](const Orchestrator& other) { return other.held == owner + 1; });
  }

  // An open attempt of the owner, as trial and number; number 0: none.
  std::pair<int, int> open_of(const World& world, int owner) const {
    for (int trial = 0; trial < kTrials; ++trial) {
      for (const AttemptFacts& attempt : databases_.facts(world.database, trial).attempts) {
        if (attempt.outcome == Outcome::open && owner_of(attempt) == owner) {
          return {trial, static_cast<int>(attempt.attempt.number)};
        }
      }
    }
    return {0, 0};
  }

  // Models orchestrator/recovery/recovery.cpp, which recovers one dead owner after another.
  template <typename Step>
  void recover(const World& world, int self, const Step& step) {
    World next = world;
    Orchestrator& me = next.owners[self];
    me.doing = recovering;
    if (me.held == 0) {
      while (me.next < kOwners &&
             (me.next == self || world.owners[me.next].life != dead ||
              (world.owners[me.next].cleared && open_of(world, me.next).second == 0))) {
        ++me.next;
      }
      if (me.next == kOwners) {
        me.next = 0;
        me.snapshot = world.database;
        me.doing = planning;
        step([&] { return fmt::format("{} reads the database", self); }, next);
      } else if (is_held(world, me.next)) {
        const int owner = me.next++;
        step([&] { return fmt::format("{} leaves {} to another", self, owner); }, next);
      } else {
        me.held = static_cast<std::int8_t>(me.next + 1);
        end_worker(next, me.next);
        step(
            [&] {
              return fmt::format("{} takes the lock of {}, whose workers end", self, me.next);
            },
            next);
      }
      return;
    }
    const int owner = me.held - 1;
    const auto [trial, number] = open_of(world, owner);
    if (number == 0) {
      me.held = 0;
      ++me.next;
      next.owners[owner].cleared = 1;
      step([&] { return fmt::format("{} removes the lock of {}", self, owner); }, next);
      return;
    }
    const Files& files = world.files[trial][number];
    const Write::What what = !files.directory ? Write::What::forget
                             : files.finished ? Write::What::finished
                                              : Write::What::stopped;
    write(next, {what, trial, number, 0, 0});
    step(
        [&, trial = trial, number = number] {
          return fmt::format("{} {} {}/{}", self,
                             what == Write::What::forget     ? "forgets"
                             : what == Write::What::finished ? "reads the end of"
                                                             : "records the end of",
                             trial, number);
        },
        next);
  }

  Databases::Result write(World& world, const Write& write) {
    const Databases::Result result = databases_.after(world.database, write);
    if (result.state > std::numeric_limits<std::int16_t>::max()) {
      throw std::length_error("a World has no room for the number of this database");
    }
    world.database = static_cast<std::int16_t>(result.state);
    return result;
  }

  TrialState plan(World& world, int self, int trial, int database) {
    Orchestrator& me = world.owners[self];
    PlanContext context;
    context.sweep = "s";
    context.liveness = [&](const AttemptFacts& attempt) {
      const int owner = owner_of(attempt);
      const bool works = world.files[trial][attempt.attempt.number].worker != 0;
      return is_held(world, owner) || works ? Liveness::alive : Liveness::dead;
    };
    const TrialPlan plan = plan_trial({}, databases_.facts(database, trial), context);
    me.standing[trial] = is_work(plan.state)                 ? waiting
                         : plan.state == TrialState::running ? elsewhere
                                                             : settled;
    me.number[trial] = 0;
    me.planned_from[trial] =
        me.standing[trial] == waiting ? static_cast<std::int8_t>(plan.planned_from) : 0;
    return plan.state;
  }

  // The first trial to rerun for which it has not yet recorded a decision; -1: none. Models
  // bring_up_to_date() of orchestrator/running/trial_table.cpp: each decision is a separate
  // transaction, based on what was read before all of them.
  int to_rerun(const World& world, int self) {
    for (int trial = 0; trial < kTrials; ++trial) {
      if (world.owners[self].decided & (1 << trial)) continue;
      World scratch = world;
      if (plan(scratch, self, trial, world.owners[self].snapshot) == TrialState::done) return trial;
    }
    return -1;
  }

  void ask_again(World& world, int self, int trial) {
    Orchestrator& me = world.owners[self];
    const auto latest = databases_.facts(me.snapshot, trial).attempts.back().attempt.number;
    write(world, {Write::What::rerun, trial, latest, 0, 0});
    world.rerun_bits[trial] |= static_cast<std::int8_t>(1 << latest);
    me.decided |= static_cast<std::int8_t>(1 << trial);
    if (to_rerun(world, self) < 0) {  // then it reads the database again
      me.snapshot = world.database;
      me.reruns = me.decided = 0;
    }
  }

  // Plans all trials at the start, and later only those that others had.
  void plan_all(World& world, int self) {
    Orchestrator& me = world.owners[self];
    for (int trial = 0; trial < kTrials; ++trial) {
      if (!me.started || me.standing[trial] == elsewhere) plan(world, self, trial, me.snapshot);
    }
    me.started = 1;
    me.snapshot = 0;
    me.doing = looping;
  }

  // Returns the number of the attempt; 0: the claim is refused.
  int claim(World& world, int self, int trial) {
    Orchestrator& me = world.owners[self];
    int highest = 0;
    for (int existing = 1; existing < kNumbers; ++existing) {
      if (world.files[trial][existing].directory) highest = existing;
    }
    const bool stopped = is_stopped(world, trial);
    const int granted =
        write(world, {Write::What::claim, trial, highest + 1, self, me.planned_from[trial]}).number;
    me.planned_from[trial] = 0;
    me.standing[trial] = granted > 0 ? claimed : elsewhere;
    me.number[trial] = static_cast<std::int8_t>(granted);
    if (granted > 0) world.files[trial][granted] = {static_cast<std::int8_t>(self), 0, 0, 0};
    if (granted > 0 && stopped) world.claimed_although_stopped[trial] = 1;
    return granted;
  }

  template <typename Step>
  void work(const World& world, int self, int trial, const Step& step) {
    World next = world;
    Orchestrator& me = next.owners[self];
    const int number = me.number[trial];
    switch (static_cast<Standing>(me.standing[trial])) {
      case waiting: {
        const int granted = claim(next, self, trial);
        for (int other = 0; gangs_ && other < kTrials; ++other) {
          if (me.standing[other] == waiting) claim(next, self, other);
        }
        step(
            [&] {
              return granted > 0 ? fmt::format("{} claims {}/{}", self, trial, granted)
                                 : fmt::format("{} is refused {}", self, trial);
            },
            next);
        return;
      }
      case claimed:
        next.files[trial][number].directory = 1;
        me.standing[trial] = prepared;
        step([&] { return fmt::format("{} makes the directory {}/{}", self, trial, number); },
             next);
        if (world.returns_left > 0) {  // the checkpoint is missing, so the trial is planned again
          next = world;
          --next.returns_left;
          write(next, {Write::What::forget, trial, number, 0, 0});
          plan(next, self, trial, next.database);
          step([&] { return fmt::format("{} takes {}/{} back", self, trial, number); }, next);
        }
        return;
      case prepared:
        if (gangs_ && std::count(me.standing.begin(), me.standing.end(), claimed) > 0) return;
        for (int other = 0; other < kTrials; ++other) {
          if (other != trial && !(gangs_ && me.standing[other] == prepared)) continue;
          next.files[other][me.number[other]].worker = 1;
          me.standing[other] = launched;
        }
        step([&] { return fmt::format("{} launches {}/{}", self, trial, number); }, next);
        return;
      case launched:
        if (!world.files[trial][number].finished) {
          if (world.files[trial][number].worker) return;
          write(next, {Write::What::stopped, trial, number, 0, 0});
          plan(next, self, trial, next.database);
          step([&] { return fmt::format("{} reads that {}/{} stopped", self, trial, number); },
               next);
          return;
        }
        write(next, {Write::What::finished, trial, number, 0, 0});
        me.standing[trial] = settled;
        me.number[trial] = 0;
        step([&] { return fmt::format("{} reads that {}/{} finished", self, trial, number); },
             next);
        return;
      case unplanned:
      case elsewhere:
      case settled:
        return;
    }
  }

  template <typename Step>
  void look_or_end(const World& world, int self, const Step& step) {
    const Orchestrator& me = world.owners[self];
    World next = world;
    if (world.posts != 0) {
      read_inbox(next);
      step([&] { return fmt::format("{} reads the inbox", self); }, next);
      next = world;
    }
    if (std::count(me.standing.begin(), me.standing.end(), settled) == kTrials) {
      std::memset(&next.owners[self], 0, sizeof next.owners[self]);
      next.owners[self].life = gone;
      step([&] { return fmt::format("{} ends", self); }, next);
    } else if (std::count(me.standing.begin(), me.standing.end(), elsewhere) > 0) {
      next.owners[self].doing = recovering;
      step([&] { return fmt::format("{} looks at what others do", self); }, next);
    }
  }

  static std::string what_is_wrong(const World& world) {
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto& files = world.files[trial];
      const auto trained = std::count_if(files.begin(), files.end(), [](const Files& attempt) {
        return attempt.worker || attempt.finished;
      });
      const auto expected = 1 + std::popcount(static_cast<std::uint8_t>(world.rerun_bits[trial]));
      if (trained > expected) {
        return fmt::format("trial {} is trained {} times, expected {}", trial, trained, expected);
      }
      if (world.claimed_although_stopped[trial])
        return fmt::format("trial {} is claimed although it was stopped", trial);
    }
    return {};
  }

  std::string what_is_wrong_at_the_end(const World& world) const {
    for (int owner = 1; owner < kOwners; ++owner) {
      if (world.owners[owner].life == alive) return fmt::format("{} waits for ever", owner);
    }
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto& attempts = databases_.facts(world.database, trial).attempts;
      const auto finished = std::count_if(
          attempts.begin(), attempts.end(),
          [](const AttemptFacts& attempt) { return attempt.outcome == Outcome::finished; });
      const auto expected = 1 + std::popcount(static_cast<std::uint8_t>(world.rerun_bits[trial]));
      const bool stopped = is_stopped(world, trial);
      if (world.stopped[trial] && !stopped && !(world.posts & (1 << trial)))
        return fmt::format("the decision to stop trial {} is lost", trial);
      if (stopped ? finished > expected : finished != expected) {
        return fmt::format("trial {} finished {} times, expected {}", trial, finished, expected);
      }
    }
    return what_is_wrong(world);
  }

  bool gangs_ = false;
  Databases databases_;
  std::vector<Seen> states_;
  std::unordered_map<World, std::size_t, Hash> numbers_;
  std::vector<std::pair<std::size_t, std::size_t>> steps_;  // to, from
  std::size_t all_states_ = 0;
};

}  // namespace

TEST_CASE("No interleaving of two orchestrators trains a trial twice or skips it",
          "[orchestrator]") {
  Explorer explorer;
  constexpr std::array kAll = {Left::nothing, Left::claim, Left::directory, Left::begun,
                               Left::finished};
  // Under a sanitizer the whole exploration takes minutes; a part of it covers every line.
#ifdef PETLAB_SANITIZED
  constexpr bool kWhole = false;
#else
  constexpr bool kWhole = true;
#endif
  // The two trials are alike, so their order does not matter.
  for (const Left one : kAll) {
    for (const Left other : {Left::nothing, Left::claim}) {
      if (!kWhole && (one != Left::directory || other != Left::nothing)) continue;
      for (const int deaths : {0, 1}) {
        INFO(fmt::format("left: {} and {}", static_cast<int>(one), static_cast<int>(other)));
        CHECK(explorer.explore({one, other}, deaths, 1 - deaths) == "");
      }
    }
  }
  // One or both orchestrators rerun existing results.
  for (const Left other : {Left::nothing, Left::claim}) {
    for (const int deaths : {0, 1}) {
      for (const int reruns : {1, 2}) {
        if (!kWhole && (deaths > 0 || reruns > 1 || other != Left::nothing)) continue;
        INFO(fmt::format("{} make again, {} deaths, left: {}", reruns, deaths,
                         static_cast<int>(other)));
        CHECK(explorer.explore({Left::finished, other}, deaths, 0, reruns) == "");
      }
    }
  }
  // A rule stops a trial while it is trained.
  for (const int deaths : {0, 1}) {
    if (!kWhole && deaths > 0) continue;
    INFO(fmt::format("one is stopped, {} deaths", deaths));
    CHECK(explorer.explore({Left::nothing, Left::nothing}, deaths, 0, 0, 1) == "");
  }
  // A worker trains both trials together, and a rule stops one.
  Explorer gangs;
  for (const Left left : {Left::nothing, Left::begun}) {
    if (!kWhole && left != Left::nothing) continue;
    INFO(fmt::format("a gang, left: {}", static_cast<int>(left)));
    CHECK(gangs.explore({left, left}, kWhole ? 1 : 0, 0, 0, 1, true) == "");
  }
  CHECK(gangs.explore({Left::nothing, Left::nothing}, 0, 1, 0, 0, true) == "");
  // A model that explores too little would find no problem.
  CHECK(explorer.states() > (kWhole ? 5'000'000 : 100'000));
  CHECK(explorer.databases() > (kWhole ? 6000 : 100));
}

}  // namespace petlab::orchestrator
