#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::cli {

/// One thing that was looked at.
struct Check {
  enum class State {
    fine,
    note,     ///< worth knowing; nothing stops for it
    problem,  ///< `petlab run` cannot do its work, or not as the user expects
  };
  std::string group;  // "machine", "worker", "places", "clusters"
  std::string name;
  State state = State::fine;
  std::string found;
  std::string fix;  // a command, or what to do; of a problem never empty
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
};

std::string_view to_string(Check::State state);

struct Diagnosis {
  std::vector<Check> checks;
  /// What `petlab run` would use here: worker (null where none can work), device, slots, launcher.
  nlohmann::ordered_json uses;
  bool fine() const;
  /// A check of that kind, to which facts may be added.
  Check& add(const std::string& group, const std::string& name, Check::State state,
             std::string found, std::string fix = "");
};

struct DoctorRequest {
  std::filesystem::path database;
  std::filesystem::path runs;
  std::string worker;                // empty: the one that comes with petlab
  std::filesystem::path root = "/";  // of proc/ and the control groups (base/control_groups.h)
};

/// Looks at this machine with the code that `petlab run` uses. It changes nothing but that it makes
/// the folder of slot locks, and a small database that it removes again.
Diagnosis diagnose(const DoctorRequest& request, const sweeps::Environment& environment);

}  // namespace petlab::cli
