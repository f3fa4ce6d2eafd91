#include "orchestrator/running/run_sweep.h"

#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/open_files.h"
#include "base/signals.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/gpu_locks.h"
#include "orchestrator/host/slots.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/local/local_launcher.h"
#include "orchestrator/planning/worker_description.h"
#include "orchestrator/records/attempt_directory.h"
#include "orchestrator/records/sweep_record.h"
#include "orchestrator/running/event_hook.h"
#include "orchestrator/running/orchestrator_lock.h"
#include "orchestrator/running/search_rounds.h"
#include "sweeps/worker_catalog.h"

namespace petlab::orchestrator {
namespace {

namespace asio = boost::asio;

// The name of the worker whose memory sweeps/memory.h estimates.
constexpr std::string_view kFormulaWorker = "petlab-trainer";

void record(results::Store& store, const std::filesystem::path& runs, const sweeps::Sweep& sweep) {
  results::SweepRow row;
  row.name = sweep.name;
  row.about = sweep.about;
  row.file = sweep.file.string();
  row.digest = sweep.digest;
  row.overrides = sweep.overrides;
  row.text = sweep.text;
  if (const auto* const catalog = sweeps::find_catalog(sweep.catalog)) row.catalog = catalog->text;
  std::vector<results::TrialRow> trials;
  trials.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    results::TrialRow& stored = trials.emplace_back();
    stored.trial_id = trial.id.value;
    stored.config = sweeps::to_json(trial.config).dump();
    const auto digest = sweep.backbone_digests.find(trial.config.backbone);
    if (digest != sweep.backbone_digests.end()) stored.backbone_digest = digest->second;
    stored.bls_bits = trial.bls_bits;
    if (trial.storage) stored.stored_bits = metrics::stored_bits(*trial.storage);
    if (trial.variants.empty()) row.members.push_back({trial.id.value, ""});
    for (const std::string& variant : trial.variants) {
      row.members.push_back({trial.id.value, variant});
    }
  }
  record_sweep(store, runs, row, trials, wall_clock_seconds());
  results::Batch batch = store.begin();
  batch.record_runs_folder(runs);
  batch.commit();
}

void make_folder(const std::filesystem::path& folder, const char* what, const char* setting) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error) {
    throw Error(fmt::format("{}: the {} cannot be written: {} (choose another with {})",
                            folder.string(), what, error.message(), setting));
  }
}

// Refuses the runs folder of another user: a run creates files that only its user may change, so
// this run would fail at the first file that exists. The owner of a new file shows whether the user
// is the same, since a file system may map users.
void require_same_user(const std::filesystem::path& runs) {
  struct stat before {};
  if (::geteuid() == 0 || ::stat(locks_folder(runs).c_str(), &before) != 0) return;
  std::string name = (runs / ".owner-XXXXXX").string();
  const base::FileDescriptor probe(::mkstemp(name.data()));
  if (!probe) return;  // the error is reported when the folder is used
  ::unlink(name.c_str());
  struct stat now {};
  if (::fstat(probe.get(), &now) != 0 || now.st_uid == before.st_uid) return;
  const passwd* user = ::getpwuid(before.st_uid);
  throw Error(fmt::format(
      "{}: this runs folder belongs to {}; two users cannot share one (choose others with --runs "
      "and --db)",
      runs.string(), user != nullptr ? user->pw_name : fmt::format("user {}", before.st_uid)));
}

DeviceChoice find_devices(const RunRequest& request, const WorkerDescription& worker,
                          const sweeps::Environment& environment, RunObserver& observer) {
  DeviceChoice choice = choose_devices(request.device, worker, environment);
  if (!choice.gpus.empty()) {
    for (const std::string& note : choice.notes) observer.note(note);
    return choice;
  }
  if (choice.failed) {
    throw std::invalid_argument(fmt::format(
        "the GPUs cannot be queried: {}; fix that, or train on CPU cores with --device cpu",
        choice.why_not));
  }
  if (request.pack > 1 || request.options.trial_memory_mib) {
    throw std::invalid_argument(fmt::format(
        "{} needs GPUs, but {}", request.pack > 1 ? "--pack" : "--trial-memory", choice.why_not));
  }
  return choice;
}

// Refuses trials whose workers cannot have the GPUs that they need.
void check_gpus(const sweeps::Sweep& sweep, const WorkerDescription& worker,
                const DeviceChoice& devices, const RunRequest& request) {
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    if (trial.gpus == 1) continue;
    const auto refuse = [&](const std::string& why) {
      throw std::invalid_argument(
          fmt::format("resources.gpus of trial {} is {}, but {}", trial.id.value, trial.gpus, why));
    };
    if (worker.max_gpus && trial.gpus > *worker.max_gpus) {
      refuse(fmt::format("{} trains a trial on at most {} GPU(s)", worker.name, *worker.max_gpus));
    }
    if (request.slurm) continue;
    if (request.pack > 1) refuse("--pack shares GPUs; run without it");
    if (devices.gpus.empty()) refuse("workers train on CPU cores: " + devices.why_not);
    const auto whole = std::count_if(devices.gpus.begin(), devices.gpus.end(),
                                     [](const Gpu& gpu) { return gpu.slice < 0; });
    if (trial.gpus > whole) refuse(fmt::format("petlab has {} whole GPU(s) here", whole));
  }
}

// Limits the slots to what the limit of open files allows, since every worker needs some in this
// process.
void fit_open_files(RunOptions& options, RunObserver& observer) {
  const auto limit = static_cast<std::int64_t>(base::raise_open_file_limit());
  const auto open = static_cast<std::int64_t>(base::open_file_count());
  const std::int64_t fits = workers_within(limit - open, options.threads);
  if (options.slots <= fits) return;
  if (fits < 1) {
    throw Error(
        fmt::format("the limit of open files is {}, too low for one worker; raise it with `ulimit "
                    "-n` to at least {}",
                    limit, open + files_of_workers(1, options.threads)));
  }
  observer.note(fmt::format(
      "running at most {} worker{}, not {}: the limit of open files is {}; raise it with `ulimit "
      "-n` to at least {}",
      fits, fits == 1 ? "" : "s", options.slots, limit,
      open + files_of_workers(options.slots, options.threads)));
  options.slots = fits;
}

OwnerName new_owner() {
  OwnerName owner;
  owner.pid = ::getpid();
  owner.start = process_start(::getpid()).value_or(0);
  owner.suffix = fmt::format("{:08x}", std::random_device{}());
  return owner;
}

// Notes a new database with an old runs folder: the old database was lost, or the user meant
// another.
void note_unknown_attempts(const sweeps::Sweep& sweep, const RunRequest& request,
                           const results::Store& store, RunObserver& observer) {
  // Reads the folders before the database: a parallel run claims in the database before it creates
  // a folder.
  std::vector<std::string> tried;
  std::unordered_set<std::string> folders;
  for (const auto& entry : base::entries_of(request.runs)) folders.insert(entry.filename());
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    if (folders.contains(trial.id.value) &&
        highest_attempt_directory(request.runs, trial.id.value) > 0) {
      tried.push_back(trial.id.value);
    }
  }
  const std::vector<results::TrialFacts> facts = store.read().trial_facts(tried);
  const auto unknown = std::count_if(facts.begin(), facts.end(),
                                     [](const auto& trial) { return trial.attempts.empty(); });
  if (unknown == 0) return;
  observer.note(
      fmt::format("{} is new, but {} holds attempts of {} of {} trials: these are rerun; to use "
                  "their results instead: petlab db import --db {} --runs {}",
                  request.database.string(), request.runs.string(), unknown, sweep.trials.size(),
                  request.database.string(), request.runs.string()));
}

// The provenance of petlab, extended by the sweep and, if workers run here, by this machine.
std::string provenance_of(const std::string& petlab, const sweeps::Sweep& sweep, bool here) {
  nlohmann::ordered_json all =
      petlab.empty() ? nlohmann::ordered_json::object() : nlohmann::ordered_json::parse(petlab);
  all["sweep_digest"] = sweep.digest;
  if (!sweep.overrides.empty()) all["overrides"] = sweep.overrides;
  if (sweep.study) all["study"] = sweep.study->id;
  // In Slurm, only the worker knows its machine.
  if (here) {
    const base::Machine machine = base::this_machine();
    all["processor"] = machine.processor;
    all["kernel"] = machine.kernel;
    if (!machine.gpu_driver.empty()) all["gpu_driver"] = machine.gpu_driver;
  }
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<std::string> ids_of(const sweeps::Sweep& sweep) {
  std::vector<std::string> ids;
  ids.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) ids.push_back(trial.id.value);
  return ids;
}

// Captures the code of the worker, and compares it with what the trials of the sweep ran. Throws
// std::invalid_argument if they differ and the user wants them equal.
void look_at_code(const sweeps::Sweep& sweep, const sweeps::Locations& locations,
                  const RunRequest& request, const sweeps::Environment& environment,
                  const WorkerDescription& worker, const results::Reader& reader,
                  RunOptions& options, RunObserver& observer) {
  options.code = std::make_shared<CodeCapture>(request.worker, environment);
  options.code_at_start = code_now(options.code->now(), worker.provenance);
  std::vector<std::string> ids = ids_of(sweep);
  std::erase_if(
      ids, [&](const std::string& id) { return is_rerun(options, id, sweeps::TrialState::done); });
  if (options.rerun_stale) {
    std::set<std::string> stale;
    const std::vector<TrialPlan> plans = plan_sweep(sweep, locations, environment, request.database,
                                                    request.runs, request.worker, options.retries);
    for (std::size_t at = 0; at < plans.size(); ++at) {
      if (plans[at].state == sweeps::TrialState::stale) stale.insert(sweep.trials[at].id.value);
    }
    std::erase_if(ids, [&](const std::string& id) { return stale.contains(id); });
  }
  const ChangedCode changed = changed_code(reader, options.runs, ids, options.code_at_start);
  if (const std::string text = changed_code_text(changed); !text.empty()) {
    if (options.strict_code) {
      throw std::invalid_argument(fmt::format(
          "--strict-code: {}\nnothing was started; restore the code, rerun these trials (petlab "
          "plan marks them; --rerun), or run without --strict-code",
          text));
    }
    observer.note(text + "; reports mark cells that mix them");
  }
  if (!options.strict_code) return;
  const protocol::CodeRecord& record = *options.code_at_start.record;
  if (!record.repository) {
    observer.note(
        fmt::format("--strict-code: no repository is compared: {}", record.why_no_repository));
  }
  // Libraries that the worker imports only when it trains are compared later.
  for (const auto& [trial, all] : results::code_of_trials(reader, ids)) {
    for (const auto& code : all) {
      for (const auto& [name, value] : code->parts) {
        if (name != "script" && name != "tree") {
          options.code_at_start.parts.try_emplace(name, value);
        }
      }
    }
  }
}

void leave_out(const sweeps::Sweep& sweep, const sweeps::Sweep& requested, RunOptions& options,
               RunObserver& observer) {
  for (const sweeps::SweepTrial& trial : sweep.trials) options.left_out.insert(trial.id.value);
  for (const sweeps::SweepTrial& trial : requested.trials) options.left_out.erase(trial.id.value);
  observer.note(fmt::format("running {} of {} trials of sweep {} (--only); the rest stay pending",
                            requested.trials.size(), sweep.trials.size(), sweep.name));
}

std::unique_ptr<Launcher> make_launcher(asio::io_context& loop, const RunRequest& request,
                                        const DeviceChoice& devices, const sweeps::Sweep& sweep,
                                        const sweeps::Environment& environment,
                                        RunObserver& observer) {
  const RunOptions& options = request.options;
  if (request.slurm) {
    SlurmOptions slurm = *request.slurm;
    slurm.worker = request.worker;
    slurm.runs = request.runs;
    slurm.owner = options.owner;
    slurm.sweep = sweep.name;
    slurm.threads = static_cast<int>(options.threads);
    slurm.detach = options.detach;
    slurm.one_trial_a_job = request.one_process_a_trial;
    slurm.note = [&observer](const std::string& line) { observer.note(line); };
    return make_slurm_launcher(loop, std::move(slurm));
  }
  LocalOptions local;
  local.worker = request.worker;
  local.one_process_a_trial = request.one_process_a_trial;
  local.slots = static_cast<int>(options.slots);
  local.threads = static_cast<int>(options.threads);
  local.gpus = devices.gpus;
  local.shares = static_cast<int>(request.pack);
  local.hide_gpus = devices.hide_gpus;
  local.environment = environment;
  local.slots_folder =
      local.gpus.empty() ? slots_folder(environment) : gpu_locks_folder(environment);
  local.locks_folder = locks_folder(request.runs);
  local.owner = options.owner;
  local.grace = options.grace;
  return make_local_launcher(loop, std::move(local));
}

}  // namespace

RunResult run_sweep(sweeps::Sweep& sweep, const sweeps::Locations& locations,
                    const sweeps::Environment& environment, RunRequest request,
                    RunObserver& observer) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // if ignored, exit statuses of workers would be lost
  request.runs = std::filesystem::absolute(request.runs).lexically_normal();
  if (request.runs.string().find_first_of("\n\t") != std::string::npos) {
    throw std::invalid_argument(
        fmt::format("the runs folder is {}: its path must not contain line breaks or tabs; choose "
                    "another with --runs",
                    nlohmann::json(request.runs.string())
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  }
  make_folder(request.runs, "runs folder", "--runs");
  require_same_user(request.runs);
  make_folder(locks_folder(request.runs), "locks folder", "--runs");
  RunOptions& options = request.options;
  options.runs = request.runs;
  options.owner = to_string(new_owner());
  const WorkerDescription worker = describe_worker(request.worker, kDescribeTimeout);
  options.worker_numerics = worker.numerics;
  options.has_memory_formula = worker.name == kFormulaWorker;
  options.provenance = provenance_of(options.provenance, sweep, !request.slurm);
  const DeviceChoice devices =
      request.slurm ? DeviceChoice() : find_devices(request, worker, environment, observer);
  check_gpus(request.part ? *request.part : sweep, worker, devices, request);
  options.slots = request.slots > 0 ? request.slots
                  : request.slurm   ? kJobsInFlight
                                    : devices.slots(request.pack, options.threads);
  options.most_in_gang = most_in_gang({request.gang, !devices.gpus.empty(), request.pack,
                                       request.one_process_a_trial, options.detach},
                                      worker.gangs,
                                      worker.undescribed.empty()
                                          ? worker.name +
                                                " trains one trial at a time; its description has "
                                                "no key gangs"
                                          : worker.name + " --describe " + worker.undescribed);
  options.gang_rule = worker.gangs.value_or(GangRule());
  options.workers_stop_trials = worker.stops_trials;
  if (!request.slurm) fit_open_files(options, observer);
  asio::io_context loop;
  // Set up before other processes can find this one by its lock: from here on, signals wait for the
  // loop.
  asio::signal_set signals(loop, SIGUSR1, SIGWINCH);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!base::is_ignored(signal)) signals.add(signal);
  }
  const OrchestratorLock lock(locks_folder(request.runs), options.owner, request.database,
                              sweep.name);
  const bool is_new = !std::filesystem::exists(request.database);
  results::OpenOptions opening;
  opening.lease = request.lease;
  opening.takes_ended_leases = true;
  results::Store store(request.database, opening);
  if (request.lease.count() > 0 && !store.alone()) {
    throw std::invalid_argument(fmt::format(
        "--lease: {} is on a file system of this host alone, so no other host could take it over",
        request.database.string()));
  }
  const sweeps::Sweep& requested = request.part ? *request.part : sweep;
  if (is_new) note_unknown_attempts(requested, request, store, observer);
  look_at_code(requested, locations, request, environment, worker, store.read(), options, observer);
  record(store, request.runs, sweep);
  if (request.part) leave_out(sweep, requested, options, observer);
  const std::string former =
      former_members_text(finished_former_members(store.read(), sweep), sweep.name);
  if (!former.empty()) observer.note(former);

  const std::unique_ptr<Launcher> launcher =
      make_launcher(loop, request, devices, sweep, environment, observer);
  EventLoop events(loop);
  std::optional<EventHook> hook;
  if (!request.on_event.empty()) {
    EventHookOptions hook_options;
    hook_options.command.text = request.on_event;
    hook_options.database = std::filesystem::absolute(request.database).lexically_normal();
    hook_options.runs = request.runs;
    hook_options.retries = options.retries;
    hook.emplace(loop, store, sweep, std::move(hook_options), observer);
    // The run does not read these trials, but a killed run may have left events of them.
    for (const std::string& trial : options.left_out) hook->settled(trial);
  }
  RunObserver& run_observer = hook ? static_cast<RunObserver&>(*hook) : observer;
  bool is_over = false;
  std::optional<Run> run;
  SearchRounds rounds(events, store, sweep, locations, request.runs, observer);
  std::function<void()> listen = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal == SIGWINCH) {
        observer.resized();
      } else if (is_over) {
        hook->stop_waiting();
      } else if (rounds.is_waiting()) {
        rounds.interrupt();
      } else if (signal == SIGINT) {
        run->interrupt();
      } else if (signal == SIGUSR1) {
        run->finish();
      } else {
        run->terminate();
      }
      listen();
    });
  };
  listen();
  RunResult result;
  while (request.part ? !run : rounds.next(result)) {
    if (run) {
      record(store, request.runs, sweep);
      options.forget_reruns();
    }
    run.emplace(events, store, *launcher, RunInput{requested, locations, options}, run_observer);
    result = run->execute();
  }
  is_over = hook.has_value();
  if (hook) hook->finish(events);
  return result;
}

std::vector<TrialPlan> plan_sweep(const sweeps::Sweep& sweep, const sweeps::Locations& locations,
                                  const sweeps::Environment& environment,
                                  const std::filesystem::path& database,
                                  const std::filesystem::path& runs, const WorkerCommand& worker,
                                  std::optional<std::int64_t> retries) {
  std::error_code error;
  std::optional<results::Reader> reader;
  if (std::filesystem::exists(database, error)) reader.emplace(database);
  PlanContext context;
  context.runs = std::filesystem::absolute(runs).lexically_normal();
  context.sweep = sweep.name;
  context.retries = retries;
  const HostIdentity here = this_host();
  context.liveness = [&](const results::AttemptFacts& attempt) {
    return liveness(attempt.begun, locks_folder(context.runs), here);
  };
  bool any_over = false;
  WorkerDescription description;
  std::vector<TrialPlan> plans;
  plans.reserve(sweep.trials.size());
  // Planned in parts, since facts are many times larger than plans.
  for (std::size_t begin = 0; begin < sweep.trials.size(); begin += kPlannedAtOnce) {
    std::vector<std::string> ids;
    for (std::size_t trial = begin; trial < std::min(begin + kPlannedAtOnce, sweep.trials.size());
         ++trial) {
      ids.push_back(sweep.trials[trial].id.value);
    }
    std::vector<results::TrialFacts> facts(ids.size());
    if (reader) facts = reader->trial_facts(ids);
    if (!any_over && std::any_of(facts.begin(), facts.end(),
                                 [](const auto& trial) { return !trial.attempts.empty(); })) {
      // What has changed since matters only if there are attempts.
      any_over = true;
      if (!worker.empty()) description = describe_worker(worker, kDescribeTimeout);
      context.numerics = description.numerics;
      context.data_digests =
          known_data_digests(sweep.tasks, locations.data_folders, locations.cache());
    }
    for (std::size_t at = 0; at < facts.size(); ++at) {
      plans.push_back(plan_trial(sweep.trials[begin + at].config, facts[at], context));
    }
  }
  if (!any_over || worker.empty()) return plans;
  CodeCapture capture(worker, environment);
  ChangedCode changed = changed_code(*reader, context.runs, ids_of(sweep),
                                     code_now(capture.now(), description.provenance));
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const auto found = changed.find(sweep.trials[at].id.value);
    if (found != changed.end()) plans[at].code_changes = std::move(found->second);
  }
  return plans;
}

}  // namespace petlab::orchestrator
