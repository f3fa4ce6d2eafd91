#include "orchestrator/planning/worker_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/trimmed.h"
#include "orchestrator/host/error.h"
#include "sweeps/worker_catalog.h"

namespace petlab::orchestrator {

namespace {

WorkerDescription ask_worker(const WorkerCommand& worker, std::chrono::milliseconds timeout) {
  WorkerDescription description;
  description.name = worker.text();
  base::ChildCommand command;
  command.program = worker.program.string();
  command.arguments = worker.arguments_and("--describe");
  command.time_limit = timeout;
  const base::ChildAnswer answer = base::run_child(std::move(command));
  if (answer.ending == base::ChildAnswer::Ending::not_started) {
    throw Error(fmt::format("{}: the worker {}", worker.text(), answer.problem));
  }
  if (answer.exit_code != 0) {
    description.undescribed = answer.problem;
    const std::string_view printed =
        base::trimmed(answer.errors.empty() ? answer.output : answer.errors);
    if (!printed.empty()) {
      description.undescribed +=
          ": " + base::printable(printed.substr(0, std::min<std::size_t>(printed.find('\n'), 200)));
    }
    return description;
  }
  const nlohmann::json object = base::shallow_json_or_none(answer.output);
  if (!object.is_object()) {
    description.undescribed = "did not print a JSON object";
    return description;
  }
  const auto refuse = [&](const char* key, const nlohmann::json& found, const char* wanted) {
    throw Error(
        fmt::format("{} --describe: {} is {}, must be {} (docs/reference/worker-protocol.md)",
                    worker.text(), key, base::shown(found), wanted));
  };
  const auto read_text = [&](const char* key, std::string& text_of) {
    const auto found = object.find(key);
    if (found == object.end()) return;
    if (!found->is_string()) refuse(key, *found, "a text");
    text_of = found->get<std::string>();
  };
  read_text("name", description.name);
  read_text("version", description.version);
  read_text("numerics", description.numerics);
  read_text("libtorch", description.libtorch);
  if (const auto found = object.find("provenance"); found != object.end()) {
    if (!found->is_object()) refuse("provenance", *found, "an object");
    description.provenance = found->dump();
  }
  if (const auto found = object.find("protocol"); found != object.end()) {
    if (!found->is_number_integer()) refuse("protocol", *found, "a whole number");
    description.protocol = found->get<std::int64_t>();
  }
  if (const auto devices = object.find("devices"); devices != object.end()) {
    const bool texts =
        devices->is_array() && std::all_of(devices->begin(), devices->end(),
                                           [](const auto& device) { return device.is_string(); });
    if (!texts) refuse("devices", *devices, "a list of texts");
    description.devices = devices->get<std::vector<std::string>>();
  }
  if (const auto stops = object.find("stops_trials"); stops != object.end()) {
    if (!stops->is_boolean()) refuse("stops_trials", *stops, "true or false");
    description.stops_trials = stops->get<bool>();
  }
  if (const auto gpus = object.find("max_gpus"); gpus != object.end()) {
    if (!gpus->is_number_integer() || *gpus < 1) refuse("max_gpus", *gpus, "a whole number from 1");
    description.max_gpus = gpus->get<std::int64_t>();
  }
  if (description.protocol != 1) {
    throw Error(
        fmt::format("{}: the worker speaks protocol {}, this petlab speaks 1 "
                    "(docs/reference/worker-protocol.md)",
                    worker.text(), description.protocol));
  }
  try {
    if (const auto catalog = object.find("catalog"); catalog != object.end()) {
      const sweeps::WorkerCatalog learned =
          sweeps::parse_worker_catalog(*catalog, description.name);
      description.catalog = learned.id;
      sweeps::learn(learned);
    }
    // After the catalog, whose fields it may name.
    if (const auto gangs = object.find("gangs"); gangs != object.end()) {
      description.gangs = parse_gang_rule(*gangs);
    }
  } catch (const std::invalid_argument& error) {
    throw Error(fmt::format("{} --describe: {} (docs/reference/worker-protocol.md)", worker.text(),
                            error.what()));
  }
  return description;
}

}  // namespace

WorkerDescription describe_worker(const WorkerCommand& worker, std::chrono::milliseconds timeout) {
  static std::mutex asking;
  static std::map<std::string, WorkerDescription> asked;
  const std::lock_guard lock(asking);
  const std::string command = worker.text();
  const auto known = asked.find(command);
  if (known != asked.end()) return known->second;
  return asked.emplace(command, ask_worker(worker, timeout)).first->second;
}

}  // namespace petlab::orchestrator
