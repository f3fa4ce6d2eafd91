#include "cli/options/open_to_write.h"

#include <ostream>
#include <string>

namespace petlab::cli {

results::Store open_to_write(const std::filesystem::path& database, Streams streams) {
  results::Store store(database);
  const std::string& told = store.brought_up_to_date();
  if (!told.empty()) streams.err << "petlab: " << told << '\n';
  return store;
}

}  // namespace petlab::cli
