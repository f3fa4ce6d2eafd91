#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/sweep_file.h"

namespace petlab::orchestrator {

/// Which trials a worker can train together: a gang. It states this in its description
/// (docs/reference/worker-protocol.md).
struct GangRule {
  /// The fields that must be equal, such as "training.compute".
  std::vector<std::string> equal;
  /// Values, as JSON texts, with which a trial is trained alone, by field.
  std::map<std::string, std::vector<std::string>> alone;
};

/// Reads the `gangs` of a description. Throws std::invalid_argument that names the key, what was
/// found and what was expected.
GangRule parse_gang_rule(const nlohmann::json& found);

/// For each trial, the number of the trials that it can be trained with; std::nullopt: it is
/// trained alone.
std::vector<std::optional<std::size_t>> gang_groups(const GangRule& rule,
                                                    const std::vector<sweeps::SweepTrial>& trials);

/// The value of --gang for which petlab chooses the size.
inline constexpr std::int64_t kAutomaticGang = 0;
/// The most trials of a gang that petlab chooses, on a GPU. On a CPU it chooses gangs of one: there
/// they gain little, and more processes use more cores (docs/internals/benchmarks.md).
inline constexpr std::int64_t kGangOnGpu = 8;

/// What decides how large gangs are.
struct GangRequest {
  std::int64_t size = 1;       // --gang: kAutomaticGang, 1 (none), or the most trials of a gang
  bool on_gpus = false;        // slots are GPUs
  std::int64_t pack = 1;       // workers that share a GPU
  bool fresh_workers = false;  // each takes a single trial
  bool detach = false;         // jobs take all their trials before they begin
};

/// The most trials of a gang. Throws std::invalid_argument if the user asked for gangs that this
/// worker cannot train or this run cannot form. `why_no_rule` says why there is no rule.
std::int64_t most_in_gang(const GangRequest& request, const std::optional<GangRule>& rule,
                          const std::string& why_no_rule);

}  // namespace petlab::orchestrator
