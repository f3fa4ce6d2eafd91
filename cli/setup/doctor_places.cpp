#include "cli/setup/doctor_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "orchestrator/host/slots.h"
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

constexpr double kBytesOfGib = 1024.0 * 1024 * 1024;
// Thresholds of free space in GiB. A trial's checkpoints take some hundred MiB; below kNothingGib
// not even one fits.
constexpr double kLittleGib = 5;
constexpr double kNothingGib = 0.0625;

// The deepest existing folder of the path.
fs::path existing_part(const fs::path& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  std::error_code error;
  while (!fs::is_directory(folder, error) && folder.has_parent_path() &&
         folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

void look_at_database(const DoctorRequest& request, Diagnosis& diagnosis) {
  const fs::path& database = request.database;
  const fs::path folder = fs::absolute(database).parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    diagnosis.add(
        "places", "database", State::problem,
        fmt::format("{}: the folder {} does not exist", database.string(), folder.string()),
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
    diagnosis
        .add("places", "database", State::problem,
             locks ? fmt::format("{} on {}: {}", folder.string(), type, place.lock_problem)
                   : place.problem,
             locks ? "a folder on a disk of this machine, named with --db"
                   : "a writable folder with free space, named with --db")
        .facts = facts;
    return;
  }
  std::string stored = fs::exists(database, error) ? "" : ", not created yet";
  if (stored.empty()) {
    try {
      const std::size_t sweeps = results::Reader(database).sweep_names().size();
      stored = fmt::format(", {} sweep{}", sweeps, sweeps == 1 ? "" : "s");
    } catch (const results::Error& unreadable) {
      diagnosis
          .add("places", "database", State::problem, unreadable.what(),
               "name another database with --db")
          .facts = facts;
      return;
    }
    if (::access(database.c_str(), W_OK) != 0) {
      diagnosis
          .add("places", "database", State::problem,
               fmt::format("{}: cannot be written: {}", database.string(), std::strerror(errno)),
               fmt::format("chmod u+w {}", database.string()))
          .facts = facts;
      return;
    }
  }
  diagnosis
      .add("places", "database", place.network ? State::note : State::fine,
           fmt::format("{} on {}{}: SQLite can write there and locks out a second writer{}",
                       database.string(), type, stored,
                       place.network ? "; only one machine at a time may write to it" : ""))
      .facts = facts;
}

void look_at_runs(const DoctorRequest& request, Diagnosis& diagnosis) {
  const fs::path existing = existing_part(request.runs);
  std::error_code error;
  if (fs::exists(request.runs, error) && !fs::is_directory(request.runs, error)) {
    diagnosis.add("places", "runs", State::problem,
                  fmt::format("{}: is not a folder", request.runs.string()),
                  "name a folder with --runs");
    return;
  }
  if (::access(existing.c_str(), W_OK) != 0) {
    diagnosis.add("places", "runs", State::problem,
                  fmt::format("{}: the runs folder cannot be written: {}", existing.string(),
                              std::strerror(errno)),
                  "name another folder with --runs");
    return;
  }
  const fs::space_info space = fs::space(existing, error);
  if (error) return;
  const double free = static_cast<double>(space.available) / kBytesOfGib;
  const bool none = free < kNothingGib;
  diagnosis
      .add("places", "runs",
           none                ? State::problem
           : free < kLittleGib ? State::note
                               : State::fine,
           fmt::format("{}: {:.1f} GiB free", request.runs.string(), free),
           none ? "free some space, or name a folder on another disk with --runs" : "")
      .facts = {{"runs", fs::absolute(request.runs).string()}, {"free_gib", free}};
}

void look_at_slots(const sweeps::Environment& environment, Diagnosis& diagnosis) {
  try {
    const fs::path folder = orchestrator::slots_folder(environment);
    if (::access(folder.c_str(), W_OK) == 0) {
      diagnosis.add("places", "slots", State::fine, folder.string()).facts = {
          {"folder", folder.string()}};
      return;
    }
    diagnosis.add("places", "slots", State::problem,
                  fmt::format("{}: the folder of slot locks cannot be written: {}", folder.string(),
                              std::strerror(errno)),
                  "name another folder with PETLAB_SLOTS");
  } catch (const std::exception& error) {
    diagnosis.add("places", "slots", State::problem, error.what(),
                  "name another folder with PETLAB_SLOTS");
  }
}

void add_backbones(const sweeps::Locations& locations, const std::vector<std::string>& models,
                   const std::vector<std::string>& cached, Diagnosis& diagnosis) {
  std::string text;
  const auto list = [&](const std::vector<std::string>& names, const fs::path& folder) {
    if (names.empty()) return;
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", fmt::join(names, ", "),
                        folder.string());
  };
  list(models, locations.models());
  list(cached, locations.hub);
  const bool none = text.empty();
  if (none) {
    text = fmt::format("none in {}{}", locations.models().string(),
                       locations.hub.empty() ? "" : " and " + locations.hub.string());
  }
  diagnosis
      .add("places", "backbones", none ? State::note : State::fine, text,
           none ? "petlab fetch backbone FacebookAI/roberta-base" : "")
      .facts = {{"own", models},
                {"models", locations.models().string()},
                {"cached", cached},
                {"cache", locations.hub.string()}};
}

void look_at_home(const sweeps::Environment& environment, Diagnosis& diagnosis) {
  sweeps::Locations locations;
  try {
    locations = sweeps::find_locations(environment);
  } catch (const std::invalid_argument& error) {
    diagnosis.add("places", "home", State::problem, error.what(), "export PETLAB_HOME=FOLDER");
    return;
  }
  std::vector<std::string> models;
  std::error_code error;
  for (fs::directory_iterator at(locations.models(), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unreadable;
    if (at->is_directory(unreadable)) models.push_back(at->path().filename().string());
  }
  std::sort(models.begin(), models.end());
  std::vector<std::string> cached;
  for (const sweeps::CachedModel& model : sweeps::cached_models(locations.hub, "")) {
    if (model.complete) cached.push_back(model.repository);
  }
  add_backbones(locations, models, cached, diagnosis);
  std::vector<std::string> ready;
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    try {
      sweeps::find_task_files(task, locations.data_folders);
      ready.push_back(task.name);
    } catch (const sweeps::Error&) {
      // Missing data is no problem: few users need all tasks.
    }
  }
  std::vector<std::string> folders;
  for (const fs::path& folder : locations.data_folders) folders.push_back(folder.string());
  diagnosis
      .add("places", "data", ready.empty() ? State::note : State::fine,
           fmt::format(
               "{} in {}",
               ready.empty() ? "of no built-in task" : fmt::format("{}", fmt::join(ready, ", ")),
               fmt::join(folders, " and ")),
           ready.empty() ? "petlab fetch data glue" : "")
      .facts = {{"tasks", ready}, {"folders", folders}};
}

}  // namespace

void look_at_places(const DoctorRequest& request, const sweeps::Environment& environment,
                    Diagnosis& diagnosis) {
  look_at_database(request, diagnosis);
  look_at_runs(request, diagnosis);
  look_at_slots(environment, diagnosis);
  look_at_home(environment, diagnosis);
}

}  // namespace petlab::cli
