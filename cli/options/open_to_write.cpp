#include "cli/options/open_to_write.h"

#include "results/database_held.h"

namespace petlab::cli {

OpenToDecide::OpenToDecide(const std::filesystem::path& database) : database_(database) {
  try {
    store_.emplace(database);
  } catch (const results::DatabaseHeld&) {
    reader_.emplace(database);
    delay_ = "written; the run that has the database open records it within a second";
  }
}

orchestrator::DecisionWriter OpenToDecide::writer() {
  if (store_) return orchestrator::DecisionWriter(*store_);
  return orchestrator::DecisionWriter(*reader_, database_);
}

}  // namespace petlab::cli
