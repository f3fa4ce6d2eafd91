#include "cli/options/open_to_write.h"

#include <ostream>
#include <string>

#include "base/shown.h"

namespace petlab::cli {

results::Store open_to_write(const std::filesystem::path& database, Streams streams) {
  results::Store store(database);
  const std::string& told = store.brought_up_to_date();
  if (!told.empty()) streams.err << "petlab: " << base::printable_message(told) << '\n';
  return store;
}

}  // namespace petlab::cli
