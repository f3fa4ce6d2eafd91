#include "cli/exchange/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "cli/exchange/merge_output.h"
#include "cli/exchange/rebuild.h"
#include "cli/options/json_option.h"
#include "exchange/archive.h"

namespace petlab::cli {
namespace {

struct ImportArguments : StoredArguments {
  std::string from;
  bool json = false;
};

int import_from(const ImportArguments& arguments, Streams streams) {
  if (arguments.from.empty()) return import_own_runs(arguments, arguments.json, streams);
  std::error_code error;
  const bool folder = std::filesystem::is_directory(arguments.from, error);
  if (!folder && !std::filesystem::is_regular_file(arguments.from, error)) {
    throw std::invalid_argument(
        fmt::format("{}: found neither a folder nor a file, expected a runs folder or an archive "
                    "from petlab db export",
                    arguments.from));
  }
  const std::filesystem::path database = arguments.database_path();
  const exchange::Incoming incoming(runs_to_fill(arguments));
  // Unpack first: an archive may be rejected, and then no database must be created.
  const std::filesystem::path from = folder ? std::filesystem::path(arguments.from)
                                            : exchange::unpack_archive(arguments.from, incoming);
  results::Store store(database);
  const exchange::MergeResult merged =
      exchange::merge_runs(store, incoming, from, {arguments.from});
  return print_merge(merged, database.string(), arguments.from, arguments.json, streams);
}

}  // namespace

std::function<int()> make_import(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ImportArguments>();
  app.add_option("FROM", arguments->from,
                 "a runs folder, or an archive from petlab db export archive (default: the "
                 "database's own runs folder)");
  add_json_option(app, arguments->json, "print one JSON object");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] {
    // Runs of another machine may create a database. A database's own runs folder requires that
    // database.
    if (!arguments->from.empty()) arguments->use = DatabaseUse::may_create;
    return import_from(*arguments, streams);
  };
}

}  // namespace petlab::cli
