#include "cli/setup/doctor_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/child.h"
#include "base/control_groups.h"
#include "base/programs.h"
#include "cli/setup/doctor_places.h"
#include "cli/setup/doctor_worker.h"
#include "orchestrator/host/gpu_locks.h"
#include "orchestrator/host/slots.h"
#include "orchestrator/planning/device_choice.h"
#include "orchestrator/slurm/command.h"
#include "orchestrator/slurm/launcher.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;
using State = Check::State;
using Facts = nlohmann::ordered_json;

constexpr double kGib = 1024.0 * 1024 * 1024;

std::string first_line_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line.empty()) {
  }
  return line;
}

base::ChildAnswer answer_of(base::ChildCommand command) {
  command.time_limit = kAnswerWithin;
  return base::run_child(std::move(command));
}

base::ChildAnswer answer_of(std::string program, std::vector<std::string> arguments) {
  base::ChildCommand command;
  command.program = std::move(program);
  command.arguments = std::move(arguments);
  return answer_of(std::move(command));
}

std::string why_failed(const base::ChildAnswer& answer) {
  const std::string line = first_line_of(answer.errors.empty() ? answer.output : answer.errors);
  return answer.problem + (line.empty() ? "" : ": " + line);
}

std::optional<double> gib_in(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    double kib = 0;
    if (words >> kib) return kib * 1024 / kGib;
  }
  return std::nullopt;
}

class Doctor {
 public:
  Doctor(const DoctorRequest& request, const sweeps::Environment& environment)
      : request_(request), environment_(environment) {}

  Diagnosis look() {
    // Must come first because it forks.
    look_at_places(request_, environment_, diagnosis_);
    worker_ =
        look_at_worker(request_.worker, trainer_fix() + "; or name another worker with --worker",
                       environment_, diagnosis_);
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
  // The program's path, or its name if it is not on PATH; then starting it fails.
  std::string on_path(const std::string& program) const {
    const std::string found = base::find_program(program, environment_("PATH").value_or(""));
    return found.empty() ? program : found;
  }

  void look_at_machine() {
    std::string text = fmt::format("{} that petlab may use", cores_.numbers.size());
    if (cores_.quota_counts()) {
      text +=
          fmt::format(": {} for this control group, of {} cores", *cores_.quota, cores_.in_mask);
    }
    Check& check = diagnosis_.add("machine", "cores", State::fine, text);
    check.facts = {{"usable", cores_.numbers.size()}, {"in_mask", cores_.in_mask}};
    if (cores_.quota) check.facts["quota"] = *cores_.quota;
    look_at_memory();
    look_at_gpus();
  }

  void look_at_memory() {
    const std::optional<double> total = gib_in(request_.root / "proc/meminfo", "MemTotal:");
    const std::optional<double> available = gib_in(request_.root / "proc/meminfo", "MemAvailable:");
    const std::optional<std::uint64_t> bytes = base::group_limits(request_.root).memory_bytes;
    const double limit_gib = static_cast<double>(bytes.value_or(0)) / kGib;
    if (!total || !available) return;
    std::string text = fmt::format("{:.1f} GiB, {:.1f} GiB free", *total, *available);
    if (bytes) text += fmt::format(", {:.1f} GiB for this control group", limit_gib);
    Check& check = diagnosis_.add("machine", "memory", State::fine, text);
    check.facts = {{"total_gib", *total}, {"available_gib", *available}};
    if (bytes) check.facts["limit_gib"] = limit_gib;
  }

  void look_at_gpus() {
    orchestrator::DeviceChoice choice;
    try {
      choice = orchestrator::choose_devices(orchestrator::Device::automatic, worker_.description,
                                            environment_);
    } catch (const std::exception& error) {
      diagnosis_.add("machine", "gpus", State::problem, error.what(),
                     "set CUDA_VISIBLE_DEVICES to GPUs that nvidia-smi lists, or unset it");
      return;
    }
    const bool driver = fs::exists("/proc/driver/nvidia/version");
    if (!choice.gpus.empty()) {
      tell_gpus(choice);
      try {
        orchestrator::gpu_locks_folder(environment_);
      } catch (const std::exception& error) {
        diagnosis_.add("machine", "gpus", State::problem, error.what(),
                       "name a folder with PETLAB_SLOTS");
      }
    } else if (choice.failed) {
      diagnosis_.add("machine", "gpus", State::problem, choice.why_not,
                     "fix that, or train on CPU cores with --device cpu");
      return;
    } else if (driver && !choice.unused) {
      diagnosis_.add("machine", "gpus", State::note,
                     fmt::format("none, though NVIDIA's driver is loaded: {}", choice.why_not),
                     "put nvidia-smi on PATH");
    } else if (choice.unused) {
      diagnosis_.add("machine", "gpus", State::note, fmt::format("not used: {}", choice.why_not));
    } else {
      diagnosis_.add("machine", "gpus", State::fine, fmt::format("none: {}", choice.why_not));
    }
    for (const std::string& note : choice.notes) {
      diagnosis_.add("machine", "gpus", State::note, note);
    }
    const bool gpus = !choice.gpus.empty();
    const bool has_worker =
        std::none_of(diagnosis_.checks.begin(), diagnosis_.checks.end(), [](const Check& check) {
          return check.group == "worker" && check.state == State::problem;
        });
    diagnosis_.uses = {{"worker", has_worker ? Facts(worker_.command.text()) : Facts(nullptr)},
                       {"device", gpus ? "gpu" : "cpu"},
                       {"slots", gpus ? choice.slots(1, 1) : orchestrator::workers_on(cores_, 1)},
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
      const std::string memory =
          gpu.total_mib == 0 ? "memory of unknown size"
                             : fmt::format("{} MiB, {} MiB used", gpu.total_mib, gpu.used_mib);
      text += fmt::format("{}{} with {}", text.empty() ? "" : ", ", gpu.name(), memory);
    }
    // The driver's version is only information. Without it the GPUs may still work.
    const bool nvidia = choice.gpus.front().kind == "cuda";
    const base::ChildAnswer driver =
        !nvidia ? base::ChildAnswer()
                : answer_of(on_path("nvidia-smi"),
                            {"--query-gpu=driver_version", "--format=csv,noheader"});
    const std::string version = driver.exit_code == 0 ? first_line_of(driver.output) : "";
    if (!version.empty()) text += fmt::format("; driver {}", version);
    Check& check = diagnosis_.add("machine", "gpus", State::fine, text);
    check.facts = {{"gpus", list}};
    if (!version.empty()) check.facts["driver"] = version;
  }

  void look_at_slurm() {
    const std::string path = environment_("PATH").value_or("");
    std::vector<std::string> missing;
    for (const char* program : orchestrator::kSlurmPrograms) {
      if (base::find_program(program, path).empty()) missing.emplace_back(program);
    }
    if (missing.size() == orchestrator::kSlurmPrograms.size()) {
      diagnosis_.add("clusters", "slurm", State::fine, "none: sbatch is not on PATH").facts = {
          {"there", false}};
      return;
    }
    if (!missing.empty()) {
      diagnosis_
          .add("clusters", "slurm", State::note,
               fmt::format("--launcher slurm cannot be used: {} is not on PATH",
                           fmt::join(missing, ", ")),
               "put all of Slurm's programs on PATH")
          .facts = {{"there", false}, {"missing", missing}};
      return;
    }
    const base::ChildAnswer answer =
        answer_of(orchestrator::slurm_command({"scontrol", "ping"}, kAnswerWithin));
    const bool up = answer.exit_code == 0;
    diagnosis_
        .add("clusters", "slurm", up ? State::fine : State::note,
             up ? fmt::format("{}; --launcher slurm uses it", first_line_of(answer.output))
                : fmt::format("it does not answer (scontrol ping {})", why_failed(answer)),
             up ? "" : "ask the cluster's administrator; --launcher slurm needs it")
        .facts = {{"there", true}, {"answers", up}};
  }

  const DoctorRequest& request_;
  const sweeps::Environment& environment_;
  const orchestrator::UsableCores cores_ = orchestrator::usable_cores(request_.root);
  Diagnosis diagnosis_;
  FoundWorker worker_;
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

Check& Diagnosis::add(const std::string& group, const std::string& name, State state,
                      std::string found, std::string fix) {
  Check check;
  check.group = group;
  check.name = name;
  check.state = state;
  check.found = std::move(found);
  check.fix = std::move(fix);
  checks.push_back(std::move(check));
  return checks.back();
}

bool Diagnosis::fine() const {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& check) { return check.state == State::problem; });
}

Diagnosis diagnose(const DoctorRequest& request, const sweeps::Environment& environment) {
  return Doctor(request, environment).look();
}

}  // namespace petlab::cli
