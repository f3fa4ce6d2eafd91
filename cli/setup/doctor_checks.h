#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::cli {

/// The result of one check.
struct Check {
  enum class State {
    fine,
    note,     ///< information; does not affect runs
    problem,  ///< `petlab run` cannot work, or not as the user expects
  };
  std::string group;  // "machine", "worker", "places", "clusters"
  std::string name;
  State state = State::fine;
  std::string found;
  std::string fix;  // a command or an instruction; never empty for a problem
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

std::string_view to_string(Check::State state);

struct Diagnosis {
  std::vector<Check> checks;
  /// What `petlab run` would use here: worker (null if none works), device, slots, launcher.
  nlohmann::ordered_json uses;
  bool fine() const;
  /// Adds a check and returns it, for adding facts.
  Check& add(const std::string& group, const std::string& name, Check::State state,
             std::string found, std::string fix = "");
};

struct DoctorRequest {
  std::filesystem::path database;
  std::filesystem::path runs;
  std::string worker;                // empty: petlab-trainer
  std::filesystem::path root = "/";  // has proc/ and the control groups (base/control_groups.h)
};

/// Inspects this machine with the code of `petlab run`. Its only side effects are the folder of
/// slot locks and a small database, which it removes.
Diagnosis diagnose(const DoctorRequest& request, const sweeps::Environment& environment);

}  // namespace petlab::cli
