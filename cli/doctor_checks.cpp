#include "cli/doctor_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/programs.h"
#include "cli/sweep_arguments.h"
#include "orchestrator/host/slots.h"
#include "orchestrator/planning/device_choice.h"
#include "orchestrator/slurm/command.h"
#include "orchestrator/slurm/launcher.h"
#include "results/place.h"
#include "results/store.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/hub_cache.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;
using State = Check::State;
using Facts = nlohmann::ordered_json;

constexpr auto kAnswerWithin = std::chrono::seconds(30);
constexpr double kGib = 1024.0 * 1024 * 1024;
// A trial's checkpoints take some hundred MiB; with less than the second not one can be written.
constexpr double kLittleGib = 5;
constexpr double kNothingGib = 0.0625;

constexpr const char* kBuildTrainer =
    "scripts/setup.sh && scripts/build.sh release, which build it with LibTorch; or name another "
    "worker with --worker";

std::string first_line_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line.empty()) {
  }
  return line;
}

orchestrator::SlurmAnswer answer_of(std::vector<std::string> words) {
  boost::asio::io_context loop;
  orchestrator::SlurmCommands commands(loop);
  orchestrator::SlurmAnswer found;
  commands.run(std::move(words), kAnswerWithin,
               [&](orchestrator::SlurmAnswer answer) { found = std::move(answer); });
  loop.run();
  return found;
}

std::string why_failed(const orchestrator::SlurmAnswer& answer) {
  if (answer.timed_out) return fmt::format("no answer within {} s", kAnswerWithin.count());
  const std::string line = first_line_of(answer.errors.empty() ? answer.output : answer.errors);
  return fmt::format("exit code {}{}", answer.exit_code, line.empty() ? "" : ": " + line);
}

// The innermost folder of the path that is there.
fs::path existing_part(const fs::path& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  std::error_code error;
  while (!fs::is_directory(folder, error) && folder.has_parent_path() &&
         folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

std::optional<double> gib_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    double value = 0;
    if (words >> value) return key.empty() ? value / kGib : value * 1024 / kGib;
  }
  return std::nullopt;
}

class Doctor {
 public:
  Doctor(const DoctorRequest& request, const sweeps::Environment& environment)
      : request_(request), environment_(environment) {}

  Diagnosis look() {
    // First: it forks.
    look_at_database();
    look_at_runs();
    look_at_slots();
    look_at_home();
    look_at_worker();
    look_at_machine();
    look_at_slurm();
    static const std::vector<std::string> kOrder = {"machine", "worker", "places", "clusters"};
    std::stable_sort(diagnosis_.checks.begin(), diagnosis_.checks.end(),
                     [](const Check& a, const Check& b) {
                       return std::find(kOrder.begin(), kOrder.end(), a.group) <
                              std::find(kOrder.begin(), kOrder.end(), b.group);
                     });
    return std::move(diagnosis_);
  }

 private:
  Check& add(const std::string& group, const std::string& name, State state, std::string found,
             std::string mend = "") {
    Check check;
    check.group = group;
    check.name = name;
    check.state = state;
    check.found = std::move(found);
    check.mend = std::move(mend);
    diagnosis_.checks.push_back(std::move(check));
    return diagnosis_.checks.back();
  }

  void look_at_machine() {
    const int cores = orchestrator::usable_cores();
    add("machine", "cores", State::fine, fmt::format("{} that petlab may use", cores)).facts = {
        {"usable", cores}};
    look_at_memory();
    look_at_gpus();
  }

  void look_at_memory() {
    const std::optional<double> total = gib_in("/proc/meminfo", "MemTotal:");
    const std::optional<double> available = gib_in("/proc/meminfo", "MemAvailable:");
    const std::optional<double> limit = gib_in("/sys/fs/cgroup/memory.max", "");
    if (!total || !available) return;
    std::string text = fmt::format("{:.1f} GiB, {:.1f} GiB free", *total, *available);
    if (limit) text += fmt::format(", {:.1f} GiB for this control group", *limit);
    Check& check = add("machine", "memory", State::fine, text);
    check.facts = {{"total_gib", *total}, {"available_gib", *available}};
    if (limit) check.facts["limit_gib"] = *limit;
  }

  void look_at_gpus() {
    orchestrator::DeviceChoice choice;
    try {
      choice =
          orchestrator::choose_devices(orchestrator::Device::automatic, description_, environment_);
    } catch (const std::exception& error) {
      add("machine", "gpus", State::problem, error.what(),
          "set CUDA_VISIBLE_DEVICES to GPUs that nvidia-smi lists, or unset it");
      return;
    }
    const bool driver = fs::exists("/proc/driver/nvidia/version");
    if (!choice.gpus.empty()) {
      tell_gpus(choice);
    } else if (choice.failed) {
      add("machine", "gpus", State::problem, choice.why_not,
          "nvidia-smi shows what is wrong with the driver; --device cpu does without");
    } else if (driver && !choice.hide_gpus) {
      add("machine", "gpus", State::note,
          fmt::format("none, though NVIDIA's driver is loaded: {}", choice.why_not),
          "put nvidia-smi on PATH");
    } else if (choice.hide_gpus) {
      add("machine", "gpus", State::note, fmt::format("not used: {}", choice.why_not));
    } else {
      add("machine", "gpus", State::fine, fmt::format("none: {}", choice.why_not));
    }
    for (const std::string& note : choice.notes) {
      if (!choice.failed) add("machine", "gpus", State::note, note);
    }
    const bool gpus = !choice.gpus.empty();
    diagnosis_.uses = {{"worker", worker_.empty() ? Facts(nullptr) : Facts(worker_.text())},
                       {"device", gpus ? "gpu" : "cpu"},
                       {"slots", choice.slots(1)},
                       {"launcher", "local"}};
  }

  void tell_gpus(const orchestrator::DeviceChoice& choice) {
    Facts list = Facts::array();
    std::string text;
    for (const orchestrator::Gpu& gpu : choice.gpus) {
      list.push_back({{"index", gpu.index},
                      {"uuid", gpu.uuid},
                      {"memory_mib", gpu.total_mib},
                      {"used_mib", gpu.used_mib}});
      text += fmt::format("{}gpu-{} with {} MiB, {} MiB used", text.empty() ? "" : ", ", gpu.index,
                          gpu.total_mib, gpu.used_mib);
    }
    // The driver's version is for people; where it cannot be had, nothing is wrong with the GPUs.
    const orchestrator::SlurmAnswer driver =
        answer_of({"nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"});
    const std::string version = driver.exit_code == 0 ? first_line_of(driver.output) : "";
    if (!version.empty()) text += fmt::format("; driver {}", version);
    Check& check = add("machine", "gpus", State::fine, text);
    check.facts = {{"gpus", list}};
    if (!version.empty()) check.facts["driver"] = version;
  }

  void look_at_worker() {
    try {
      worker_ = worker_program(request_.worker, environment_);
    } catch (const std::invalid_argument& error) {
      add("worker", "program", State::problem, error.what(),
          request_.worker.empty() ? kBuildTrainer : "name a program with --worker");
      return;
    }
    const orchestrator::SlurmAnswer answer = answer_of(worker_.command_line("--describe"));
    try {
      description_ = orchestrator::describe_worker(worker_, kAnswerWithin);
    } catch (const std::exception& error) {
      add("worker", "program", State::problem, error.what(),
          "build petlab and its worker together");
      return;
    }
    look_at_libtorch();
    if (answer.exit_code != 0) {
      // Of a worker of the user's own that is allowed; petlab's answers when it can run at all.
      const bool own = worker_.program.filename() == "petlab-trainer";
      add("worker", "program", own ? State::problem : State::note,
          fmt::format("{} --describe: {}", worker_.text(), why_failed(answer)),
          own ? kBuildTrainer : "a worker may answer --describe (docs/worker.md)");
      return;
    }
    const std::string devices = fmt::format("{}", fmt::join(description_.devices, ", "));
    Check& check =
        add("worker", "program", State::fine,
            fmt::format("{} {} at {}, computes on {}", description_.name, description_.version,
                        worker_.text(), devices.empty() ? "what it is given" : devices));
    check.facts = {{"path", worker_.text()},
                   {"name", description_.name},
                   {"version", description_.version},
                   {"numerics", description_.numerics},
                   {"devices", description_.devices}};
    std::error_code error;
    if (description_.name == "petlab-trainer" &&
        !fs::is_regular_file(worker_.check_program(), error)) {
      add("worker", "check", State::note,
          fmt::format("there is no {}-check: weights and data are not looked at before the first "
                      "trial",
                      worker_.text()),
          "scripts/build.sh release");
    }
  }

  // Which LibTorch the trainer loads, as the dynamic linker finds it.
  void look_at_libtorch() {
    const orchestrator::SlurmAnswer linked = answer_of({"ldd", worker_.program.string()});
    std::istringstream lines(linked.output);
    for (std::string line; std::getline(lines, line);) {
      const auto arrow = line.find(" => ");
      if (line.find("libtorch_cpu.so") == std::string::npos || arrow == std::string::npos) continue;
      const std::string path = line.substr(arrow + 4, line.rfind(" (") - arrow - 4);
      if (path.find("not found") != std::string::npos) {
        add("worker", "libtorch", State::problem,
            fmt::format("{} needs libtorch_cpu.so, which is not found", worker_.text()),
            kBuildTrainer);
        return;
      }
      const fs::path folder = fs::path(path).parent_path().parent_path();
      std::string version;
      std::ifstream wheel(folder / "version.py");
      for (std::string row; std::getline(wheel, row);) {
        if (row.starts_with("__version__ = '")) version = row.substr(15, row.rfind('\'') - 15);
      }
      if (version.empty()) {
        std::ifstream unpacked(folder / "build-version");
        std::getline(unpacked, version);
      }
      std::error_code error;
      const bool cuda = fs::exists(folder / "lib/libtorch_cuda.so", error);
      add("worker", "libtorch", State::fine,
          fmt::format("{}{} build in {}", version.empty() ? "" : version + ", ",
                      cuda ? "a CUDA" : "a CPU", folder.string()))
          .facts = {{"version", version}, {"cuda", cuda}, {"folder", folder.string()}};
      return;
    }
  }

  void look_at_database() {
    const fs::path& database = request_.database;
    const fs::path folder = fs::absolute(database).parent_path();
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      add("places", "database", State::problem,
          fmt::format("{}: there is no folder {}", database.string(), folder.string()),
          fmt::format("mkdir -p {}", folder.string()));
      return;
    }
    const results::DatabasePlace place = results::examine_place(database);
    const std::string type = place.file_system.empty() ? "unknown" : place.file_system;
    const Facts facts = {{"database", fs::absolute(database).string()},
                         {"file_system", place.file_system},
                         {"network", place.network}};
    if (!place.problem.empty() || !place.lock_problem.empty()) {
      const bool locks = place.problem.empty();
      add("places", "database", State::problem,
          locks ? fmt::format("{} on {}: {}", folder.string(), type, place.lock_problem)
                : place.problem,
          locks ? "a folder on a disk of this machine, named with --db"
                : "a folder that can be written and has room, named with --db")
          .facts = facts;
      return;
    }
    std::string stored = fs::exists(database, error) ? "" : ", not there yet";
    if (stored.empty()) {
      try {
        const std::size_t sweeps = results::Reader(database).sweep_names().size();
        stored = fmt::format(", {} sweep{}", sweeps, sweeps == 1 ? "" : "s");
      } catch (const results::Error& unreadable) {
        add("places", "database", State::problem, unreadable.what(),
            "name another database with --db")
            .facts = facts;
        return;
      }
      if (::access(database.c_str(), W_OK) != 0) {
        add("places", "database", State::problem,
            fmt::format("{}: cannot be written: {}", database.string(), std::strerror(errno)),
            fmt::format("chmod u+w {}", database.string()))
            .facts = facts;
        return;
      }
    }
    add("places", "database", place.network ? State::note : State::fine,
        fmt::format("{} on {}{}: SQLite writes there and keeps a second writer out{}",
                    database.string(), type, stored,
                    place.network ? "; between machines one petlab at a time may write it" : ""))
        .facts = facts;
  }

  void look_at_runs() {
    const fs::path there = existing_part(request_.runs);
    std::error_code error;
    if (fs::exists(request_.runs, error) && !fs::is_directory(request_.runs, error)) {
      add("places", "runs", State::problem, fmt::format("{}: is no folder", request_.runs.string()),
          "name a folder with --runs");
      return;
    }
    if (::access(there.c_str(), W_OK) != 0) {
      add("places", "runs", State::problem,
          fmt::format("{}: the runs folder cannot be written: {}", there.string(),
                      std::strerror(errno)),
          "name another folder with --runs");
      return;
    }
    const fs::space_info space = fs::space(there, error);
    if (error) return;
    const double free = static_cast<double>(space.available) / kGib;
    const bool none = free < kNothingGib;
    add("places", "runs",
        none                ? State::problem
        : free < kLittleGib ? State::note
                            : State::fine,
        fmt::format("{}: {:.1f} GiB free", request_.runs.string(), free),
        none ? "free some space, or name a folder on another disk with --runs" : "")
        .facts = {{"runs", fs::absolute(request_.runs).string()}, {"free_gib", free}};
  }

  void look_at_slots() {
    try {
      const fs::path folder = orchestrator::slots_folder(environment_);
      if (::access(folder.c_str(), W_OK) == 0) {
        add("places", "slots", State::fine, folder.string()).facts = {{"folder", folder.string()}};
        return;
      }
      add("places", "slots", State::problem,
          fmt::format("{}: the folder of slot locks cannot be written: {}", folder.string(),
                      std::strerror(errno)),
          "name another folder with PETLAB_SLOTS");
    } catch (const std::exception& error) {
      add("places", "slots", State::problem, error.what(), "name another folder with PETLAB_SLOTS");
    }
  }

  void look_at_home() {
    sweeps::Locations locations;
    try {
      locations = sweeps::find_locations(environment_);
    } catch (const std::invalid_argument& error) {
      add("places", "home", State::problem, error.what(), "export PETLAB_HOME=FOLDER");
      return;
    }
    std::vector<std::string> own;
    std::error_code error;
    for (fs::directory_iterator at(locations.models(), error), end; !error && at != end;
         at.increment(error)) {
      std::error_code unreadable;
      if (at->is_directory(unreadable)) own.push_back(at->path().filename().string());
    }
    std::sort(own.begin(), own.end());
    std::vector<std::string> cached;
    for (const sweeps::CachedModel& model : sweeps::cached_models(locations.hub, "")) {
      if (model.complete) cached.push_back(model.repository);
    }
    tell_backbones(locations, own, cached);
    std::vector<std::string> ready;
    for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
      try {
        sweeps::find_task_files(task, locations.data_folders);
        ready.push_back(task.name);
      } catch (const sweeps::Error&) {
        // Not there; nobody needs them all.
      }
    }
    std::vector<std::string> folders;
    for (const fs::path& folder : locations.data_folders) folders.push_back(folder.string());
    add("places", "data", ready.empty() ? State::note : State::fine,
        fmt::format(
            "{} in {}",
            ready.empty() ? "of no built-in task" : fmt::format("{}", fmt::join(ready, ", ")),
            fmt::join(folders, " and ")),
        ready.empty() ? "petlab fetch data glue" : "")
        .facts = {{"tasks", ready}, {"folders", folders}};
  }

  void tell_backbones(const sweeps::Locations& locations, const std::vector<std::string>& own,
                      const std::vector<std::string>& cached) {
    std::string text;
    const auto tell = [&](const std::vector<std::string>& names, const fs::path& folder) {
      if (names.empty()) return;
      text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", fmt::join(names, ", "),
                          folder.string());
    };
    tell(own, locations.models());
    tell(cached, locations.hub);
    const bool none = text.empty();
    if (none) {
      text = fmt::format("none in {}{}", locations.models().string(),
                         locations.hub.empty() ? "" : " and " + locations.hub.string());
    }
    add("places", "backbones", none ? State::note : State::fine, text,
        none ? "petlab fetch backbone FacebookAI/roberta-base" : "")
        .facts = {{"own", own},
                  {"models", locations.models().string()},
                  {"cached", cached},
                  {"cache", locations.hub.string()}};
  }

  void look_at_slurm() {
    const std::string path = environment_("PATH").value_or("");
    std::vector<std::string> missing;
    for (const char* program : orchestrator::kSlurmPrograms) {
      if (base::find_program(program, path).empty()) missing.emplace_back(program);
    }
    if (missing.size() == orchestrator::kSlurmPrograms.size()) {
      add("clusters", "slurm", State::fine, "none: sbatch is not on PATH").facts = {
          {"there", false}};
      return;
    }
    if (!missing.empty()) {
      add("clusters", "slurm", State::note,
          fmt::format("--launcher slurm cannot be used: {} is not on PATH",
                      fmt::join(missing, ", ")),
          "put all of Slurm's programs on PATH")
          .facts = {{"there", false}, {"missing", missing}};
      return;
    }
    const orchestrator::SlurmAnswer answer = answer_of({"scontrol", "ping"});
    const bool up = answer.exit_code == 0;
    add("clusters", "slurm", up ? State::fine : State::note,
        up ? fmt::format("{}; --launcher slurm uses it", first_line_of(answer.output))
           : fmt::format("it does not answer (scontrol ping: {})", why_failed(answer)),
        up ? "" : "ask whoever runs the cluster; --launcher slurm needs it")
        .facts = {{"there", true}, {"answers", up}};
  }

  const DoctorRequest& request_;
  const sweeps::Environment& environment_;
  Diagnosis diagnosis_;
  orchestrator::WorkerCommand worker_;
  orchestrator::WorkerDescription description_;
};

}  // namespace

std::string_view to_string(Check::State state) {
  switch (state) {
    case State::fine:
      return "ok";
    case State::note:
      return "note";
    case State::problem:
      return "problem";
  }
  return "";
}

bool Diagnosis::fine() const {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& check) { return check.state == State::problem; });
}

Diagnosis diagnose(const DoctorRequest& request, const sweeps::Environment& environment) {
  return Doctor(request, environment).look();
}

}  // namespace petlab::cli
