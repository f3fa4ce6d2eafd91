#include "cli/options/open_to_write.h"

#include <ostream>
#include <string>

#include "base/shown.h"
#include "results/database_held.h"

namespace petlab::cli {

results::Store open_to_write(const std::filesystem::path& database, Streams streams) {
  results::Store store(database);
  const std::string& told = store.brought_up_to_date();
  if (!told.empty()) streams.err << "petlab: " << base::printable_message(told) << '\n';
  return store;
}

OpenToDecide::OpenToDecide(const std::filesystem::path& database, Streams streams)
    : database_(database) {
  try {
    store_.emplace(open_to_write(database, streams));
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
