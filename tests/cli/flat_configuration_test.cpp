#include "cli/output/flat_configuration.h"

#include <string>
#include <vector>

#include "sweeps/catalog.h"
#include "sweeps/trial_config.h"
#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

/// The names of module and training fields that differ from the defaults of the module's kind.
std::vector<std::string> changed_fields(const sweeps::TrialConfig& config) {
  std::vector<std::string> names;
  for (const ConfigurationEntry& entry : flat_configuration(sweeps::to_json(config).dump())) {
    const bool compared = entry.name.starts_with("module.") || entry.name.starts_with("training.");
    if (compared && !entry.usual) names.push_back(entry.name);
  }
  return names;
}

}  // namespace

TEST_CASE("The defaults of each kind of module are not shown as changed", "[cli]") {
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    INFO(row.kind);
    sweeps::TrialConfig config = sweeps::default_config(row.kind);
    CHECK(changed_fields(config).empty());
    config.training.learning_rate *= 2;
    CHECK(changed_fields(config) == std::vector<std::string>{"training.learning_rate"});
  }
}

}  // namespace petlab::cli
