#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::testing {

/// Parses the definition of a report "r".
inline reports::Definition definition(const std::string& text) {
  return reports::parse_definition("report: r\n" + text, "r.yaml");
}

/// Builds a Dataset step by step.
class DataMaker {
 public:
  /// Adds a done trial of sweep "s". `configuration` has its fields except task and seed.
  std::size_t trial(const std::string& variant, std::int64_t seed, const std::string& task,
                    const std::map<std::string, results::Value>& configuration = {}) {
    reports::Trial added;
    added.sweep = "s";
    added.variant = variant;
    added.id = "t" + std::to_string(data.trials.size());
    added.state = "done";
    added.seed = seed;
    added.tasks = {task};
    added.numerics = R"({"version":"1"})";
    added.fields = configuration;
    for (const auto& [field, value] : configuration) data.configuration.insert(field);
    added.fields["sweep"] = added.sweep;
    added.fields["variant"] = added.variant;
    added.fields["trial_id"] = added.id;
    added.fields["state"] = added.state;
    added.fields["seed"] = added.seed;
    added.fields["task"] = task;
    data.trials.push_back(added);
    return data.trials.size() - 1;
  }

  void score(std::size_t trial, const std::string& name, std::optional<double> value,
             const std::string& split = "test", std::int64_t step = 10) {
    data.scores.push_back({trial, step,
                           std::make_shared<const reports::Series>(
                               reports::Series{split, data.trials[trial].tasks.front(), name}),
                           value});
  }

  reports::Dataset data;
};

}  // namespace petlab::testing
