#include "cli/setup/doctor_worker.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <system_error>

#include "base/tools_python.h"
#include "cli/options/sweep_arguments.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;
using State = Check::State;

void look_at_libtorch(const orchestrator::WorkerDescription& description, Diagnosis& diagnosis) {
  if (description.libtorch.empty()) return;
  const fs::path folder =
      fs::path(description.libtorch).lexically_normal().parent_path().parent_path();
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
  diagnosis
      .add("worker", "libtorch", State::fine,
           fmt::format("{}{} build in {}", version.empty() ? "" : version + ", ",
                       cuda ? "a CUDA" : "a CPU", folder.string()))
      .facts = {{"version", version}, {"cuda", cuda}, {"folder", folder.string()}};
}

}  // namespace

std::string trainer_fix() {
  return base::tools_python("").of_environment
             ? "install a torch that petlab's wheel has a trainer for"
             : "scripts/setup.sh && scripts/build.sh release build it with LibTorch";
}

FoundWorker look_at_worker(const std::string& named, const std::string& fix,
                           const sweeps::Environment& environment, Diagnosis& diagnosis) {
  FoundWorker found;
  orchestrator::WorkerCommand& worker = found.command;
  try {
    worker = worker_program(named, environment);
  } catch (const std::invalid_argument& error) {
    diagnosis.add("worker", "program", State::problem, error.what(),
                  named.empty() ? fix : "name a program with --worker");
    return found;
  }
  orchestrator::WorkerDescription& description = found.description;
  try {
    description = orchestrator::describe_worker(worker, kAnswerWithin);
  } catch (const std::exception& error) {
    diagnosis.add("worker", "program", State::problem, error.what(),
                  "build petlab and its worker together");
    return found;
  }
  look_at_libtorch(description, diagnosis);
  if (!description.undescribed.empty()) {
    // A user's own worker may lack this command; petlab-trainer always answers if it can run.
    const bool is_trainer = worker.program.filename() == "petlab-trainer";
    diagnosis.add(
        "worker", "program", is_trainer ? State::problem : State::note,
        fmt::format("{} --describe {}", worker.text(), description.undescribed),
        is_trainer ? fix : "a worker may answer --describe (docs/reference/worker-protocol.md)");
    return found;
  }
  const std::string devices = fmt::format("{}", fmt::join(description.devices, ", "));
  Check& check = diagnosis.add(
      "worker", "program", State::fine,
      fmt::format("{} {} at {}, computes on {}", description.name, description.version,
                  worker.text(), devices.empty() ? "the given device" : devices));
  check.facts = {{"path", worker.text()},
                 {"name", description.name},
                 {"version", description.version},
                 {"numerics", description.numerics},
                 {"devices", description.devices}};
  std::error_code error;
  if (description.name == "petlab-trainer" && !fs::is_regular_file(worker.check_program(), error)) {
    diagnosis.add(
        "worker", "check", State::note,
        fmt::format("{}-check is missing: weights and data are not checked before the first trial",
                    worker.text()),
        "scripts/build.sh release");
  }
  return found;
}

}  // namespace petlab::cli
