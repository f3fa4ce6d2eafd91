#include "cli/exchange/update.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include "cli/options/database_option.h"
#include "results/store.h"

namespace petlab::cli {

std::function<int()> make_update(CLI::App& app, Streams streams) {
  const auto named = std::make_shared<std::string>();
  add_database_option(app, *named);
  app.footer(
      "Every command that writes to a database updates it first. A copy of the old one is kept "
      "next to it.");
  return [named, streams] {
    const std::filesystem::path database = find_database(*named, DatabaseUse::existing).file;
    std::error_code error;
    if (!std::filesystem::exists(database, error)) {
      throw std::invalid_argument(
          fmt::format("{}: the database does not exist", database.string()));
    }
    const results::Store store(database);
    streams.out << fmt::format("{}: version {}\n", database.string(), results::kDatabaseVersion);
    return kDone;
  };
}

}  // namespace petlab::cli
