#include "cli/running/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>

#include "base/build_info.h"
#include "base/shown.h"
#include "cli/live/live_run.h"
#include "cli/options/database_option.h"
#include "cli/options/duration_option.h"
#include "cli/options/help_format.h"
#include "cli/options/json_option.h"
#include "cli/options/sweep_arguments.h"
#include "cli/options/version.h"
#include "cli/output/patient_output.h"
#include "cli/output/screen.h"
#include "cli/output/shell_word.h"
#include "cli/running/only_trials.h"
#include "orchestrator/host/fault_point.h"
#include "orchestrator/planning/input_check.h"
#include "orchestrator/running/progress_line.h"
#include "orchestrator/running/run_sweep.h"
#include "reports/builtin.h"
#include "sweeps/error.h"

namespace petlab::cli {
namespace {

struct RunArguments : SweepArguments {
  std::int64_t slots = 0;
  std::string device = "auto";
  std::int64_t pack = 1;
  std::string gang = "off";
  std::uint64_t trial_memory = 0;  // bytes; 0: not given
  std::int64_t threads = 1;
  std::optional<std::int64_t> retries;
  double retry_delay = 1;
  double time_limit = 0;
  double no_progress_limit = 0;
  double grace = 10;
  double lease = 0;
  std::optional<std::string> on_event;
  std::vector<std::string> rerun;
  std::vector<std::string> only;
  bool fresh_workers = false;
  bool resume_stopped = false;
  bool nice = false;
  bool detach = false;
  bool keep_going = false;
  bool strict_code = false;
  bool quiet = false;
  bool json = false;
  std::string launcher = "local";
  orchestrator::SlurmOptions slurm;
  double slurm_poll = 5;
  double slurm_idle = 120;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// Refuses what only a run that stays can do, and an unintended number of jobs.
void check_detach(const RunArguments& arguments) {
  if (arguments.slots == 0) {
    throw std::invalid_argument(
        "--detach needs --slots, the number of workers that share the trials");
  }
  if (arguments.time_limit > 0 || arguments.no_progress_limit > 0) {
    throw std::invalid_argument(
        "--time-limit and --no-progress-limit cannot be used with --detach, because no run watches "
        "the trials; --slurm-time limits each job");
  }
}

orchestrator::RunRequest request_of(const RunArguments& arguments,
                                    const sweeps::Environment& environment) {
  orchestrator::RunRequest request;
  request.database = arguments.database_path();
  // Do not create a mistyped folder along with the runs folder.
  const std::filesystem::path folder = request.database.parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    throw results::Error(
        fmt::format("{}: the folder of the database does not exist; create it, or "
                    "name another with --db",
                    request.database.string()));
  }
  request.runs = arguments.runs_path();
  // A recorded runs folder that is missing is not recreated silently: it contained checkpoints and
  // logs.
  if (arguments.runs.empty() && remembers_runs(request.database)) {
    require_runs_folder(request.runs, request.database);
  }
  request.worker = worker_program(arguments.worker, environment);
  request.slots = arguments.slots;
  if (arguments.launcher == "slurm") {
    if (arguments.device != "auto" || arguments.pack > 1 || arguments.trial_memory > 0) {
      throw std::invalid_argument(
          "--device, --pack and --trial-memory cannot be used with --launcher slurm: Slurm assigns "
          "each job its device");
    }
    request.slurm = arguments.slurm;
    request.slurm->poll = milliseconds(arguments.slurm_poll);
    request.slurm->idle =
        std::chrono::duration_cast<std::chrono::seconds>(milliseconds(arguments.slurm_idle));
    orchestrator::check_slurm_options(*request.slurm);
    orchestrator::choose_cluster(*request.slurm, environment);
    if (arguments.detach) check_detach(arguments);
  }
  request.device = arguments.device == "gpu"   ? orchestrator::Device::gpu
                   : arguments.device == "cpu" ? orchestrator::Device::cpu
                                               : orchestrator::Device::automatic;
  request.pack = arguments.pack;
  request.gang = arguments.gang == "auto"  ? orchestrator::kAutomaticGang
                 : arguments.gang == "off" ? 1
                                           : std::stoll(arguments.gang);
  if (arguments.trial_memory > 0) {
    if (arguments.pack == 1) {
      throw std::invalid_argument("--trial-memory requires --pack");
    }
    constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
    request.options.trial_memory_mib =
        static_cast<std::int64_t>((arguments.trial_memory + kMib - 1) / kMib);
  }
  request.on_event =
      arguments.on_event ? *arguments.on_event : environment("PETLAB_ON_EVENT").value_or("");
  request.one_process_a_trial = arguments.fresh_workers;
  request.options.threads = arguments.threads;
  request.options.retries = arguments.retries;
  request.options.retry_delay = milliseconds(arguments.retry_delay);
  request.options.strict_code = arguments.strict_code;
  request.options.nice = arguments.nice;
  request.options.detach = arguments.detach;
  request.options.grace = milliseconds(arguments.grace);
  constexpr double kShortestLease = 10;
  if (arguments.lease > 0 && arguments.lease < kShortestLease) {
    throw std::invalid_argument(
        fmt::format("--lease is {} s, must be at least {} s", arguments.lease, kShortestLease));
  }
  request.lease = std::chrono::seconds(std::llround(arguments.lease));
  if (arguments.time_limit > 0) request.options.time_limit = milliseconds(arguments.time_limit);
  if (arguments.no_progress_limit > 0) {
    request.options.no_progress_limit = milliseconds(arguments.no_progress_limit);
  }
  const base::BuildInfo& build = base::build_info();
  request.options.petlab_version = base::commit_text(build);
  nlohmann::ordered_json provenance = {{"version", kVersion}, {"commit", build.commit}};
  provenance["clean"] = build.clean ? nlohmann::ordered_json(*build.clean) : nullptr;
  provenance["compiler"] = build.compiler;
  provenance["flags"] = build.flags;
  request.options.provenance = provenance.dump();
  return request;
}

// Parses --rerun: a keyword, or the prefix of a requested trial's id.
void choose_reruns(const std::vector<std::string>& words, const sweeps::Sweep& sweep,
                   orchestrator::RunOptions& options) {
  for (const std::string& word : words) {
    if (word == "stale") {
      options.rerun_stale = true;
    } else if (word == "failed") {
      options.rerun_failed = true;
    } else if (word == "all") {
      options.rerun_all = true;
    } else {
      std::vector<std::string> found;
      for (const sweeps::SweepTrial& trial : sweep.trials) {
        if (!word.empty() && trial.id.value.starts_with(word)) found.push_back(trial.id.value);
      }
      if (found.size() != 1) {
        throw std::invalid_argument(
            found.empty()
                ? fmt::format("--rerun: found {}, expected stale, failed, all or the id of a "
                              "requested trial (petlab plan lists them)",
                              word)
                : fmt::format("--rerun: {} is a prefix of {} trial ids; give a longer one", word,
                              found.size()));
      }
      options.rerun_trials.insert(found.front());
    }
  }
}

// Fails before the first trial for missing inputs that the worker would otherwise report trial by
// trial.
void require_inputs(const RunArguments& arguments, const sweeps::Sweep& sweep,
                    const sweeps::Locations& locations, const sweeps::Environment& environment,
                    const orchestrator::RunRequest& request) {
  std::error_code error;
  if (arguments.keep_going || !std::filesystem::exists(request.worker.check_program(), error)) {
    return;
  }
  const std::vector<orchestrator::TrialPlan> plans =
      orchestrator::plan_sweep(sweep, locations, environment, request.database, request.runs,
                               request.worker, request.options.retries);
  std::vector<std::size_t> trials;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::TrialState state = plans[at].state;
    if (orchestrator::is_work(state) ||
        orchestrator::is_rerun(request.options, sweep.trials[at].id.value, state)) {
      trials.push_back(at);
    }
  }
  const orchestrator::InputCheck check =
      orchestrator::check_inputs(sweep, trials, locations, request.worker);
  if (check.problems.empty()) return;
  throw sweeps::Error(
      fmt::format("{}\nnothing was started; fix this, or pass --keep-going to run the trials that "
                  "can run (and, once it is fixed, the rest with --rerun failed)",
                  fmt::join(check.problems, "\n")));
}

// The command that prints the sweep's report: a shipped report about it, or the table of any sweep.
std::string report_command(const std::string& sweep, const std::filesystem::path& database) {
  std::string words = "sweep --sweep " + shell_word(sweep);
  for (const std::string& name : reports::builtin_reports()) {
    const std::vector<std::string> of = reports::builtin_report(name).sweeps;
    if (of.size() == 1 && of.front() == sweep) words = name;
  }
  // Omits --db if the report finds the same database from this folder.
  std::error_code error;
  std::string option = " --db " + shell_word(database.string());
  try {
    if (std::filesystem::equivalent(database_to_read(""), database, error)) option.clear();
  } catch (const std::invalid_argument&) {
  }
  return fmt::format("petlab report {}{}", words, option);
}

int run(const RunArguments& arguments, Streams streams) {
  // A blocked terminal or pipe never stalls trials or Ctrl-C.
  const PatientOutput out(streams.out);
  PatientOutput err(streams.err);
  const sweeps::Environment environment = sweeps::process_environment();
  orchestrator::arm_fault_point(environment(orchestrator::kFaultPointVariable).value_or(""));
  const sweeps::Locations locations = sweeps::find_locations(environment);
  sweeps::Sweep sweep = arguments.load(locations, environment);
  orchestrator::RunRequest request = request_of(arguments, environment);
  if (arguments.detach && sweep.study) {
    throw std::invalid_argument(
        fmt::format("{}: --detach cannot be used with a search by tpe, because each round depends "
                    "on the results of the last",
                    sweep.file.string()));
  }
  if (const auto places = only_trials(sweep, arguments.only)) {
    request.part = part_of(sweep, *places);
  }
  request.options.resume_stopped = arguments.resume_stopped;
  choose_reruns(arguments.rerun, request.part ? *request.part : sweep, request.options);
  require_inputs(arguments, request.part ? *request.part : sweep, locations, environment, request);
  orchestrator::RunResult result;
  bool is_live = false;
  if (arguments.json) {
    JsonLines lines(streams.out);
    result = orchestrator::run_sweep(sweep, locations, environment, request, lines);
    lines.end(result);
  } else if (!arguments.quiet && err.writer() != nullptr &&
             Screen::can_draw(err.writer()->fd(), environment("TERM").value_or(""))) {
    const std::string no_colour = environment("NO_COLOR").value_or("");
    LiveRun live(*err.writer(), request.database, sweep, no_colour.empty());
    is_live = true;
    result = orchestrator::run_sweep(sweep, locations, environment, request, live);
  } else {
    orchestrator::ProgressLine progress(streams.err, arguments.quiet);
    result = orchestrator::run_sweep(sweep, locations, environment, request, progress);
  }
  if (!result.problem.empty() && !arguments.json) {
    streams.err << "petlab: " << base::printable_message(result.problem) << "\n";
  }
  const int code = exit_code(result);
  if (code == kDone && is_live) {
    streams.err << "report: " << report_command(sweep.name, request.database) << "\n";
  }
  if (code == kInterrupted && !arguments.quiet && !arguments.json) {
    streams.err << "interrupted; run the same command to resume\n";
  }
  return code;
}

// Options that most runs do not need.
void add_advanced_options(CLI::App& app, RunArguments& arguments) {
  advanced(app.add_option("--pack", arguments.pack, "workers per GPU if its memory suffices"))
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  advanced(app.add_option("--gang", arguments.gang, "trials that a worker trains together"))
      ->type_name("auto|off|N")
      ->check(CLI::IsMember({"auto", "off"}) | CLI::Range(1, 64))
      ->capture_default_str();
  advanced(app.add_option("--trial-memory", arguments.trial_memory,
                          "GPU memory per trial for --pack (default: all)"))
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false))
      ->transform(number_first("a size such as 6GiB"));  // runs before the other transform
  advanced(app.add_option("--threads", arguments.threads, "threads per worker"))
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  advanced(add_retries_option(app, arguments.retries,
                              "retries of a crashed or stalled trial (default: 2)"));
  advanced(add_duration(app, "--retry-delay", arguments.retry_delay,
                        "wait before a retry, doubled each time (default: 1s)"));
  advanced(add_duration(app, "--time-limit", arguments.time_limit,
                        "fail an attempt after this long (default: none)"));
  advanced(add_duration(app, "--no-progress-limit", arguments.no_progress_limit,
                        "kill and retry an attempt silent for this long"));
  advanced(add_duration(app, "--grace", arguments.grace,
                        "time to end before a worker is killed (default: 10s)"));
  advanced(add_duration(app, "--lease", arguments.lease,
                        "let others continue if this host vanishes this long"));
  advanced(app.add_option("--on-event", arguments.on_event,
                          "pipe events to a command (default: PETLAB_ON_EVENT)"))
      ->type_name("COMMAND");
  advanced(app.add_flag("--strict-code", arguments.strict_code,
                        "refuse to mix results of different code"));
  advanced(app.add_flag("--nice", arguments.nice, "give way to all other runs on this machine"));
  advanced(app.add_flag("--fresh-workers", arguments.fresh_workers,
                        "start a new worker process (or job) for each trial"));
}

void add_slurm_options(CLI::App& app, RunArguments& arguments) {
  for_slurm(
      app.add_option("--slurm-partition", arguments.slurm.partition, "as sbatch --partition"));
  for_slurm(app.add_option("--slurm-account", arguments.slurm.account, "as sbatch --account"));
  for_slurm(app.add_option("--slurm-gpus", arguments.slurm.gpus,
                           "GPUs per worker, N or TYPE:N (default: none)"));
  for_slurm(app.add_option("--slurm-exclusive", arguments.slurm.node_workers,
                           "give each job a whole node, with N of the --slots workers"))
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  for_slurm(app.add_option("--slurm-time", arguments.slurm.time,
                           "as sbatch --time; another job resumes what it cuts off"));
  for_slurm(app.add_option("--slurm-arg", arguments.slurm.arguments,
                           "another argument of sbatch, as --slurm-arg=--mem=8G; repeatable"))
      ->type_size(1)
      ->allow_extra_args(false);
  for_slurm(app.add_option("--slurm-setup", arguments.slurm.setup,
                           "command that a job runs in bash before its worker, as 'module load "
                           "cuda'; repeatable"))
      ->type_name("COMMAND")
      ->type_size(1)
      ->allow_extra_args(false);
  for_slurm(
      app.add_flag("--detach", arguments.detach,
                   "give all trials to --slots workers, and end; the same command adopts them"));
  for_slurm(add_duration(app, "--slurm-poll", arguments.slurm_poll,
                         "interval between squeue calls (default: 5s)"));
  for_slurm(add_duration(app, "--slurm-idle", arguments.slurm_idle,
                         "end a job idle for this long (default: 2m)"));
}

}  // namespace

std::function<int()> make_run(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<RunArguments>();
  add_sweep_arguments(app, *arguments, streams);
  add_only_option(app, arguments->only);
  app.add_option("--slots", arguments->slots, "maximum parallel workers (default: GPUs or cores)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--device", arguments->device, "auto uses GPUs if possible")
      ->check(CLI::IsMember({"auto", "gpu", "cpu"}))
      ->capture_default_str();
  app.add_option("--rerun", arguments->rerun, "rerun stale, failed, all, or the given trial ids")
      ->type_name("WHICH")
      ->delimiter(',')
      ->type_size(1)
      ->allow_extra_args(false);
  app.add_flag("--resume-stopped", arguments->resume_stopped,
               "continue trials that stop_early stopped");
  app.add_flag("--keep-going", arguments->keep_going,
               "run what can run if some inputs are unreadable");
  app.add_option("--launcher", arguments->launcher, "start workers here or as Slurm jobs")
      ->check(CLI::IsMember({"local", "slurm"}))
      ->capture_default_str();
  app.add_flag("--quiet", arguments->quiet, "print only failures and notes");
  add_json_option(app, arguments->json, "print JSON lines: status, trial_over, note, end", "jsonl");
  app.get_option("--format")->group("");  // the help has no line to spare for a longer --json
  add_advanced_options(app, *arguments);
  add_slurm_options(app, *arguments);
  return [arguments, streams, &app] {
    if (arguments->quiet && arguments->json) {
      throw std::invalid_argument("found --quiet and --json, expected one of them");
    }
    if (arguments->launcher != "slurm") {
      for (const CLI::Option* option : app.get_options()) {
        if (option->count() > 0 && option->get_group() == kSlurmOptions) {
          throw std::invalid_argument(option->get_name() + " needs --launcher slurm");
        }
      }
    } else if (arguments->nice) {
      throw std::invalid_argument(
          "--nice cannot be used with --launcher slurm: Slurm has priorities of its own "
          "(--slurm-arg=--nice)");
    }
    return run(*arguments, streams);
  };
}

}  // namespace petlab::cli
