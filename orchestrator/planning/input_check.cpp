#include "orchestrator/planning/input_check.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "base/child.h"
#include "base/shallow_json.h"

namespace petlab::orchestrator {
namespace {

// The check program may have to read several GiB of data.
constexpr auto kTimeout = std::chrono::minutes(10);
constexpr std::size_t kMostAnswer = std::size_t{16} << 20;

nlohmann::ordered_json request_of(const sweeps::Sweep& sweep, std::span<const std::size_t> trials,
                                  const sweeps::Locations& locations) {
  std::set<std::string> backbones;
  std::set<std::string> tasks;
  for (const std::size_t trial : trials) {
    const sweeps::TrialConfig& config = sweep.trials[trial].config;
    if (!config.backbone.empty()) backbones.insert(config.backbone);
    tasks.insert(config.tasks.begin(), config.tasks.end());
  }
  nlohmann::ordered_json request = {{"v", 1},
                                    {"backbones", nlohmann::ordered_json::array()},
                                    {"tasks", nlohmann::ordered_json::array()},
                                    {"data_folders", nlohmann::ordered_json::array()}};
  for (const std::string& backbone : backbones) {
    request["backbones"].push_back(
        std::filesystem::absolute(sweep.backbone_folders.at(backbone)).string());
  }
  for (const std::string& task : tasks) {
    request["tasks"].push_back(sweeps::to_json(sweep.tasks.at(task)));
  }
  for (const std::filesystem::path& folder : locations.data_folders) {
    request["data_folders"].push_back(std::filesystem::absolute(folder).string());
  }
  return request;
}

}  // namespace

InputCheck check_inputs(const sweeps::Sweep& sweep, std::span<const std::size_t> trials,
                        const sweeps::Locations& locations, const WorkerCommand& worker) {
  InputCheck found;
  if (trials.empty()) return found;
  const std::filesystem::path program = worker.check_program();
  std::error_code error;
  if (!std::filesystem::is_regular_file(program, error)) {
    found.not_looked =
        program.empty()
            ? fmt::format("weights and data are not checked: {} has no -check program",
                          worker.text())
            : fmt::format("weights and data are not checked: {} does not exist", program.string());
    return found;
  }
  base::ChildCommand command;
  command.program = program.string();
  command.input = request_of(sweep, trials, locations).dump();
  command.time_limit = kTimeout;
  command.output_limit = kMostAnswer;
  const base::ChildAnswer answer = base::run_child(std::move(command));
  if (!answer.problem.empty()) {
    found.not_looked =
        fmt::format("weights and data are not checked: {} {}", program.string(), answer.problem);
    return found;
  }
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = base::shallow_json_or_none(line);
    if (object.is_object() && object.contains("problem") && object["problem"].is_string()) {
      found.problems.push_back(object["problem"].get<std::string>());
    }
  }
  return found;
}

}  // namespace petlab::orchestrator
