#include "cli/output/flat_configuration.h"

#include <stdexcept>

#include "sweeps/catalog.h"
#include "sweeps/fields.h"

namespace petlab::cli {

std::vector<ConfigurationEntry> flat_configuration(const std::string& config) {
  const auto json = nlohmann::ordered_json::parse(config, nullptr, false);
  if (!json.is_object()) throw std::runtime_error("the trial's configuration is no JSON object");
  sweeps::TrialConfig usual;
  const std::string catalog = json.value("catalog", std::string());
  if (const auto module = json.find("module"); module != json.end() && module->is_object()) {
    const auto kind = module->find("kind");
    if (kind != module->end() && kind->is_string() &&
        sweeps::find_module(kind->get<std::string>(), catalog) != nullptr) {
      usual = sweeps::default_config(kind->get<std::string>(), catalog);
    }
  }
  std::vector<ConfigurationEntry> all;
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    const sweeps::Field* field = sweeps::find_field(name);
    all.push_back({name == "tasks" ? "task" : name, value,
                   field != nullptr && nlohmann::ordered_json(field->get(usual)) == value});
  };
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      for (const auto& [inner, its] : value.items()) add(key + "." + inner, its);
    } else {
      add(key, value);
    }
  }
  return all;
}

}  // namespace petlab::cli
