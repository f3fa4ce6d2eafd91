#include "tests/simulation/simulated_world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "base/invariant.h"
#include "base/process_handle.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/host/worker_mark.h"

namespace petlab::testing {
namespace {

World* the_world = nullptr;
constexpr std::size_t kNotes = 200;

}  // namespace

World::World(std::uint64_t seed) : random_(seed) { the_world = this; }
World::~World() { the_world = nullptr; }
World& World::current() {
  if (the_world == nullptr) throw std::logic_error("there is no simulated world");
  return *the_world;
}

// Not std::uniform_int_distribution: its numbers may differ between libraries.
std::size_t World::below(std::size_t bound) { return random_() % bound; }
bool World::chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1.0p-53 < probability;
}
World::Milliseconds World::up_to(Milliseconds most) {
  return Milliseconds(below(static_cast<std::size_t>(most.count()) + 1));
}

void World::in(Clock::duration wait, std::function<void()> act) {
  acts_.emplace(now_ + wait, std::move(act));
}

bool World::step() {
  if (acts_.empty()) return false;
  const auto first = acts_.begin();
  now_ = std::max(now_, first->first);
  const std::function<void()> act = std::move(first->second);
  acts_.erase(first);
  act();
  return true;
}

pid_t World::start_process(SimulatedProcess process) {
  process.start = static_cast<std::int64_t>(100 * seconds());
  processes_.emplace(++last_pid_, std::move(process));
  return last_pid_;
}
SimulatedProcess* World::find(pid_t pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}
SimulatedProcess* World::visible(pid_t pid) {
  SimulatedProcess* const process = find(pid);
  return process != nullptr && process->space == actor.space ? process : nullptr;
}
void World::signal(pid_t pid, int number) {
  in(up_to(Milliseconds(3)), [this, pid, number] {
    SimulatedProcess* const process = find(pid);
    if (process != nullptr && process->on_signal) process->on_signal(number);
  });
}
std::vector<pid_t> World::with_lock(const std::string& lock) {
  std::vector<pid_t> found;
  for (const auto& [pid, process] : processes_) {
    if (process.space == actor.space && process.worker_lock == lock) found.push_back(pid);
  }
  return found;
}

orchestrator::HostIdentity World::host() const {
  return {"simulated", fmt::format("boot-{}", boots_), actor.space};
}

void World::note(std::string line) {
  notes_.push_back(fmt::format("{:9.3f} {}", seconds() - 1000, line));
  if (notes_.size() > kNotes) notes_.pop_front();
}
void World::fault(std::string what) {
  if (!found_.empty()) return;
  note("FAULT: " + what);
  found_ = std::move(what);
}

}  // namespace petlab::testing

// --- What petlab asks the kernel, answered by the world.

using petlab::testing::World;

// Names of temporary files contain the pid.
extern "C" pid_t getpid() noexcept {
  return petlab::testing::the_world == nullptr ? static_cast<pid_t>(::syscall(SYS_getpid))
                                               : petlab::testing::the_world->actor.pid;
}

namespace petlab::base {

// Fails the seed, which is then simplified and printed.
void end_for_broken_invariant(const std::string& what, const char*, int) {
  throw std::logic_error("a broken invariant: " + what);
}

// The descriptor only shows that the handle is not empty.
ProcessHandle::ProcessHandle(pid_t pid) : pid_(pid) {
  if (World::current().visible(pid) != nullptr) {
    fd_ = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}
bool ProcessHandle::is_gone(int) const { return World::current().visible(pid_) == nullptr; }
bool ProcessHandle::send(int signal) const {
  if (is_gone()) return false;
  World::current().signal(pid_, signal);
  return true;
}

}  // namespace petlab::base

namespace petlab::orchestrator {

HostIdentity this_host() { return World::current().host(); }
double wall_clock_seconds() { return World::current().wall_seconds(); }
void fault_point(FaultPointName name) {
  World& world = World::current();
  if (world.on_point) world.on_point(name.text());
}

std::optional<std::int64_t> process_start(pid_t pid) {
  const auto* const process = World::current().visible(pid);
  return process == nullptr ? std::nullopt : std::optional(process->start);
}
std::vector<pid_t> processes_with_environment(const std::string&, const std::string& value) {
  return World::current().with_lock(value);
}
base::ProcessHandle hold_process(pid_t pid, const std::string&, const std::string& value) {
  const auto* const process = World::current().visible(pid);
  const bool is_it = process != nullptr && process->worker_lock == value;
  return is_it ? base::ProcessHandle(pid) : base::ProcessHandle();
}
base::ProcessHandle hold_process(pid_t pid, std::int64_t start) {
  return process_start(pid) == start ? base::ProcessHandle(pid) : base::ProcessHandle();
}

}  // namespace petlab::orchestrator
