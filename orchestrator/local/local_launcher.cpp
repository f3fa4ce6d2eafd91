#include "orchestrator/local/local_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/process_end.h"
#include "base/start_process.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/process_identity.h"
#include "orchestrator/host/slots.h"
#include "orchestrator/host/worker_mark.h"
#include "orchestrator/launching/worker_log.h"
#include "orchestrator/local/gpu_slots.h"
#include "orchestrator/local/guardian.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;
using Stream = asio::posix::stream_descriptor;

// A slot of this orchestrator, with the objects that live as long as the slot.
struct LocalSlot {
  Slot slot;
  LockFile worker_lock;
  std::unique_ptr<Guardian> guardian;
  base::ProcessEnd guardian_death;
  pid_t group = 0;            // of the worker; 0: none
  bool asked = false;         // this process has asked the worker to end
  bool worker_lives = false;  // the worker was killed but does not end, and is not waited for
};

// A process that was killed or has ended is gone within this time, unless it waits in the kernel or
// is traced.
constexpr auto kGoneWithin = std::chrono::milliseconds(500);

// The GPU memory of other processes is queried before a slot is acquired, but not more often than
// this.
constexpr auto kLookAtGpus = std::chrono::seconds(5);

bool is_gpu_variable(const std::string& entry) {
  const auto& kinds = gpu_kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const GpuKind& kind) { return entry.starts_with(kind.variable + "="); });
}

std::vector<std::string> worker_environment(const LockFile& lock, const Slot& slot,
                                            const LocalOptions& options) {
  const std::string marker = std::string(kWorkerVariable) + "=";
  std::vector<std::string> environment;
  bool has_threads = false;
  // A worker sees only its own GPU. ROCm also reads CUDA_VISIBLE_DEVICES, so that variable is not
  // set for an AMD GPU.
  std::map<std::string, std::string> chosen;
  if (!slot.gpu_uuid.empty() || options.hide_gpus) {
    for (const GpuKind& kind : gpu_kinds()) {
      if (slot.device == kind.name) {
        chosen[kind.variable] = slot.gpu_selector;
      } else if (slot.device != "rocm") {
        chosen[kind.variable] = kind.hidden_by;
      }
    }
  }
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("PETLAB_LOCK_FD=") || text.starts_with(marker)) continue;
    if (!chosen.empty() && is_gpu_variable(text)) continue;
    has_threads = has_threads || text.starts_with("OMP_NUM_THREADS=");
    environment.push_back(text);
  }
  environment.push_back(fmt::format("PETLAB_LOCK_FD={}", lock.fd()));
  environment.push_back(fmt::format("{}={}", kWorkerVariable, lock.file().string()));
  for (const auto& [name, value] : chosen) environment.push_back(name + "=" + value);
  if (!has_threads) environment.push_back(fmt::format("OMP_NUM_THREADS={}", options.threads));
  return environment;
}

std::pair<base::FileDescriptor, base::FileDescriptor> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("cannot create a pipe for a worker: {}", std::strerror(errno)));
  }
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

class LocalWorker final : public Worker {
 public:
  LocalWorker(asio::io_context& loop, const LocalOptions& options, LocalSlot& slot,
              const std::vector<std::filesystem::path>& first,
              std::function<void(WorkerEnd)> on_end)
      : slot_(slot),
        on_end_(std::move(on_end)),
        log_(options.max_log_bytes),
        input_(loop),
        output_(loop),
        death_(loop) {
    auto [input_read, input_write] = make_pipe();
    auto [output_read, output_write] = make_pipe();
    base::ProcessStart start;
    start.program = options.worker.program.string();
    start.arguments =
        options.worker.arguments_and(options.one_process_a_trial ? first.front().string() : "-");
    start.environment = worker_environment(slot.worker_lock, slot.slot, options);
    start.input = input_read.get();
    start.output = start.errors = output_write.get();
    start.kept = {slot.worker_lock.fd(), slot.slot.lock.fd()};
    for (const LockFile& other : slot.slot.further) start.kept.push_back(other.fd());
    start.cores = slot.slot.bound_to;
    start.hears_sigterm = true;  // petlab sends it to stop a worker
    // Announced before the worker runs any code, so that it never runs unwatched.
    start.announce = Guardian::watch_self;
    start.announced_to = slot.guardian->pipe_fd();
    // Output before petlab's next check belongs to the first attempt, too.
    log_.log_to(protocol::TrialDirectory(first.front()).log());
    const base::StartedProcess started = base::start_process(start);
    if (started.error != 0) {
      if (started.pid > 0) slot.guardian->release(started.pid);
      throw Error(fmt::format("{}: the worker cannot be started: {}", options.worker.text(),
                              std::strerror(started.error)));
    }
    pid_ = started.pid;
    slot_.group = pid_;
    launch_.pid = pid_;
    launch_.pid_start = process_start(pid_).value_or(0);
    launch_.device = slot.slot.name;
    if (!slot.slot.gpu_uuid.empty()) launch_.device += " " + slot.slot.gpu_uuid;
    input_.assign(input_write.release());
    input_.native_non_blocking(true);
    output_.assign(output_read.release());
    output_.native_non_blocking(true);
    read_output();
    death_.watch(pid_, [this] { ended(); });
    if (options.one_process_a_trial) {
      close();
    } else {
      submit(first);
    }
  }

  ~LocalWorker() override {
    if (over_) return;
    // The files stay, to show the next run that the worker still holds its locks.
    if (!end_group(kGoneWithin)) slot_.worker_lives = true;
  }

  void submit(const std::vector<std::filesystem::path>& attempt_folders) override {
    for (const std::filesystem::path& folder : attempt_folders) log_.expect(folder);
    pending_ += protocol::line_of(attempt_folders) + "\n";
    write_input();
  }

  void close() override {
    closing_ = true;
    write_input();
  }

  void log_to(const std::filesystem::path& log) override {
    drain();
    log_.log_to(log);
  }

  std::string last_lines(const std::filesystem::path& log) override {
    drain();
    return log_.last_lines(log);
  }

  void stop() override {
    if (over_) return;
    slot_.asked = true;
    if (first_to_ask(asked_file(slot_.worker_lock.file()).c_str())) ::kill(-slot_.group, SIGTERM);
    ::kill(-slot_.group, SIGCONT);
  }
  void kill() override {
    if (!over_) ::kill(-slot_.group, SIGKILL);
  }
  const results::Launch& launch() const override { return launch_; }

 private:
  void write_input() {
    while (!pending_.empty()) {
      const ssize_t wrote = ::write(input_.native_handle(), pending_.data(), pending_.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EAGAIN) {
        if (!waiting_to_write_) {
          waiting_to_write_ = true;
          input_.async_wait(Stream::wait_write, [this, alive = std::weak_ptr(alive_)](
                                                    const boost::system::error_code& error) {
            if (error || alive.expired()) return;
            waiting_to_write_ = false;
            write_input();
          });
        }
        return;
      }
      // EPIPE: the worker no longer reads, so it is ending. Another worker gets the attempts that
      // it did not start.
      if (wrote < 0) return;
      pending_.erase(0, static_cast<std::size_t>(wrote));
    }
    if (closing_ && input_.is_open()) input_.close();
  }

  // Returns false at the end of the output. Reads at most a few buffers at a time, so that a worker
  // that floods its log cannot block the run.
  bool drain(int buffers = 64) {
    if (!output_.is_open()) return false;
    std::array<char, 65536> buffer;
    while (buffers-- > 0) {
      const ssize_t got = ::read(output_.native_handle(), buffer.data(), buffer.size());
      if (got > 0) {
        log_.append({buffer.data(), static_cast<std::size_t>(got)});
      } else if (got == 0) {
        return false;
      } else if (errno != EINTR) {
        return errno == EAGAIN;
      }
    }
    return true;
  }

  void read_output() {
    output_.async_wait(Stream::wait_read, [this, alive = std::weak_ptr(alive_)](
                                              const boost::system::error_code& error) {
      if (error || alive.expired()) return;
      if (drain(4)) {
        read_output();
      } else {
        output_.close();
      }
    });
  }

  // Kills the worker with everything left in its group, then reaps it. Until it is reaped, no other
  // process or group can have its number. Returns its exit status; std::nullopt if it does not end
  // within `limit`.
  std::optional<int> end_group(std::chrono::milliseconds limit) {
    ::kill(-pid_, SIGKILL);
    forget_group();
    return base::reap_within(pid_, limit);
  }

  void ended() {
    over_ = true;
    const std::optional<int> status = end_group(kGoneWithin);
    drain();
    // Does not wait for the end of the output: a process that left the group may hold the pipe open
    // forever.
    boost::system::error_code ignored;
    output_.close(ignored);
    input_.close(ignored);
    WorkerEnd end;
    if (!status) {
      end.how = TakenAway{"it was traced, so its exit status is unknown"};
    } else if (WIFSIGNALED(*status)) {
      end.how = Killed{WTERMSIG(*status)};
    } else {
      end.how = Exited{WEXITSTATUS(*status)};
    }
    log_.end();
    end.last_lines = log_.last_lines();
    end.lines_by_log = log_.lines_by_log();
    std::exchange(on_end_, nullptr)(std::move(end));
  }

  void forget_group() {
    slot_.guardian->release(slot_.group);
    slot_.group = 0;
    std::error_code ignored;
    if (std::exchange(slot_.asked, false)) {
      std::filesystem::remove(asked_file(slot_.worker_lock.file()), ignored);
    }
  }

  LocalSlot& slot_;
  std::function<void(WorkerEnd)> on_end_;
  WorkerLog log_;
  Stream input_;
  Stream output_;
  base::ProcessEnd death_;
  pid_t pid_ = -1;
  results::Launch launch_;
  std::string pending_;
  bool waiting_to_write_ = false;
  bool closing_ = false;
  bool over_ = false;
  // Shows queued handlers that the worker has been destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class LocalLauncher final : public Launcher, public SharedDevices {
 public:
  LocalLauncher(asio::io_context& loop, LocalOptions options)
      : loop_(loop), options_(std::move(options)) {
    if (options_.gpus.empty()) {
      cores_.emplace(options_.slots_folder, usable_cores(), options_.slots, options_.threads);
      return;
    }
    gpus_.emplace(options_.slots_folder, options_.gpus, options_.shares);
    query_.emplace(loop_, options_.environment, options_.gpus);
  }

  std::optional<std::string> acquire_slot(std::int64_t gpus) override {
    if (gpus_) return acquire_share({std::nullopt, true, true, {}, gpus});
    return take(cores_->acquire());
  }

  std::optional<SharedPlaces> shared_places() const override {
    if (!gpus_) return SharedPlaces{cores_->folder(), cores_->places(), cores_->cores_of_slot()};
    SharedPlaces shared{options_.slots_folder, {}};
    for (const Gpu& gpu : options_.gpus) shared.places.push_back(gpu.uuid);
    return shared;
  }

  SharedDevices* shared_devices() override { return gpus_ && options_.shares > 1 ? this : nullptr; }

  std::string kind() const override { return "local"; }

  std::optional<std::string> acquire_share(const SlotRequest& request) override {
    room_mib_ = 0;
    if (gpus_->may_have_room(request) && !gpus_are_known()) return std::nullopt;
    std::optional<Slot> slot = gpus_->acquire(request);
    room_mib_ = gpus_->room_mib();
    return take(std::move(slot));
  }

  DeviceShare share(const std::string& name) const override {
    const Slot& slot = slots_.at(name).slot;
    return {slot.reserved_mib, gpus_ && gpus_->is_kept(slot)};
  }

  void report_memory(const std::string& name, std::int64_t reported_mib) override {
    gpus_->report(slots_.at(name).slot, reported_mib);
  }

  Resized resize_share(const std::string& name, std::int64_t reserved_mib) override {
    return gpus_->resize(slots_.at(name).slot, reserved_mib);
  }

  std::int64_t largest_share_mib() const override { return gpus_->largest_mib(); }
  std::int64_t room_mib() const override { return room_mib_; }

  std::string why_no_slot() const override {
    if (!gpus_) return {};
    return gpu_problem_.empty() ? gpus_->state() : gpu_problem_;
  }

  void release_slot(const std::string& name) override {
    const auto found = slots_.find(name);
    if (found == slots_.end()) return;
    std::error_code ignored;
    if (!found->second.worker_lives) {
      std::filesystem::remove(found->second.worker_lock.file(), ignored);
    }
    slots_.erase(found);
  }

  SlotDevice device(const std::string& name) const override {
    const Slot& slot = slots_.at(name).slot;
    return {slot.device, slot.gpu_uuid, slot.reserved_mib};
  }

  void use_device(const std::string& gpu, DeviceUse use, std::size_t failures) override {
    if (gpus_) gpus_->use(gpu, use, failures);
  }
  std::size_t devices() const override { return gpus_ ? gpus_->usable() : 1; }

  std::unique_ptr<Worker> start(const std::string& name,
                                const std::vector<std::filesystem::path>& attempt_folders,
                                std::function<void(WorkerEnd)> on_end) override {
    return std::make_unique<LocalWorker>(loop_, options_, slots_.at(name), attempt_folders,
                                         std::move(on_end));
  }

  bool workers_stay() const override { return !options_.one_process_a_trial; }

 private:
  std::optional<std::string> take(std::optional<Slot> slot) {
    if (!slot) return std::nullopt;
    const std::string name = slot->name;
    auto lock = LockFile::try_lock(options_.locks_folder / (options_.owner + "." + name + ".lock"));
    if (!lock) {
      // Only a process that left an earlier worker's group can hold it, which is a documented
      // limit.
      throw Error(fmt::format(
          "{}: a process left over from an earlier worker still holds the worker's lock", name));
    }
    const auto entry = slots_.try_emplace(
        name, LocalSlot{std::move(*slot), std::move(*lock), nullptr, base::ProcessEnd(loop_)});
    guard(entry.first->second);
    return name;
  }

  // True if the GPU memory of other processes was queried recently. Otherwise starts a query.
  bool gpus_are_known() {
    const auto now = std::chrono::steady_clock::now();
    if (gpu_problem_.empty() && now - gpus_known_ < kLookAtGpus) return true;
    if (query_->under_way() || now - gpus_asked_ < kLookAtGpus / 5) return false;
    gpus_asked_ = now;
    query_->ask(kGpuTimeout, [this, before = gpus_->reported()](const GpuList& list) {
      // If no GPU is listed, workers would fail on all of them.
      gpu_problem_ = list.failed ? list.why_none : std::string();
      if (list.failed) return;
      gpus_->update(list.gpus, before);
      gpus_known_ = std::chrono::steady_clock::now();
    });
    return false;
  }

  // Starts the slot's guardian, and another whenever it dies.
  void guard(LocalSlot& slot) {
    slot.guardian.reset();
    slot.guardian = std::make_unique<Guardian>(options_.grace, asked_file(slot.worker_lock.file()));
    if (slot.group != 0) slot.guardian->watch(slot.group);
    slot.guardian_death.watch(slot.guardian->pid(), [this, &slot] {
      if (slot.guardian->reap_if_dead()) guard(slot);
    });
  }

  asio::io_context& loop_;
  LocalOptions options_;
  std::map<std::string, LocalSlot> slots_;
  std::optional<CpuSlots> cores_;  // if there are no GPUs
  std::optional<GpuSlots> gpus_;
  std::optional<GpuQuery> query_;
  std::chrono::steady_clock::time_point gpus_known_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point gpus_asked_;
  std::string gpu_problem_;
  std::int64_t room_mib_ = 0;
};

}  // namespace

// Open files per worker, in addition to a lock for each of its cores or its GPU: its own lock, the
// guardian's pipe and handle, its input, output, handle and log.
constexpr std::int64_t kFilesOfWorker = 7;
// Open files of the run itself: its lock and loop, the database, watches, and files that are open
// briefly.
constexpr std::int64_t kFilesOfRun = 48;

std::int64_t files_of_workers(std::int64_t workers, std::int64_t threads) {
  return kFilesOfRun + workers * (kFilesOfWorker + threads);
}

std::int64_t workers_within(std::int64_t files, std::int64_t threads) {
  return std::max<std::int64_t>(0, (files - kFilesOfRun) / (kFilesOfWorker + threads));
}

std::unique_ptr<Launcher> make_local_launcher(asio::io_context& loop, LocalOptions options) {
  return std::make_unique<LocalLauncher>(loop, std::move(options));
}

}  // namespace petlab::orchestrator
