#include "cli/exchange/backup.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>

#include "cli/options/database_option.h"
#include "cli/output/counted.h"
#include "results/backup.h"

namespace petlab::cli {
namespace {

struct BackupArguments {
  std::string copy;
  std::string database;
};

int back_up(const BackupArguments& arguments, Streams streams) {
  const std::filesystem::path database = database_to_read(arguments.database);
  std::filesystem::path copy = arguments.copy;
  std::error_code error;
  if (std::filesystem::is_directory(copy, error)) copy /= database.filename();
  if (std::filesystem::exists(std::filesystem::symlink_status(copy, error))) {
    throw std::invalid_argument(
        fmt::format("{}: the file exists; move it, or name another", copy.string()));
  }
  results::back_up(database, copy);
  streams.out << fmt::format("{}: a copy of {}, {}; it does not include the runs folder\n",
                             copy.string(), database.string(),
                             bytes_text(std::filesystem::file_size(copy)));
  return kDone;
}

}  // namespace

std::function<int()> make_backup(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<BackupArguments>();
  app.add_option("COPY", arguments->copy, "the new file, or a folder to put it in")->required();
  add_database_option(app, arguments->database);
  return [arguments, streams] { return back_up(*arguments, streams); };
}

}  // namespace petlab::cli
