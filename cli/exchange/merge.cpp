#include "cli/exchange/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "cli/exchange/merge_output.h"
#include "cli/options/database_option.h"
#include "cli/options/json_option.h"

namespace petlab::cli {
namespace {

struct MergeArguments : StoredArguments {
  std::string other;
  std::string other_runs;
  bool json = false;
};

std::filesystem::path runs_of_the_other(const MergeArguments& arguments) {
  std::error_code error;
  if (!std::filesystem::exists(arguments.other, error)) {
    throw std::invalid_argument(fmt::format("{}: the database does not exist", arguments.other));
  }
  const std::filesystem::path runs = runs_folder_of(arguments.other, arguments.other_runs);
  if (std::filesystem::is_directory(runs, error)) return runs;
  throw std::invalid_argument(
      fmt::format("{}: the runs folder of {} does not exist, but a merge copies the attempts' "
                  "files from it: copy it next to that database, or name it with --other-runs",
                  runs.string(), arguments.other));
}

int merge(const MergeArguments& arguments, Streams streams) {
  const std::filesystem::path other_runs = runs_of_the_other(arguments);
  const std::filesystem::path database = arguments.database_path();
  std::error_code error;
  if (std::filesystem::equivalent(database, arguments.other, error)) {
    throw std::invalid_argument(
        fmt::format("{}: this is the same database; name another", arguments.other));
  }
  const std::filesystem::path runs = runs_to_fill(arguments);
  results::Store store(database);
  const exchange::Incoming incoming(runs);
  const exchange::MergeResult merged =
      exchange::merge_runs(store, incoming, other_runs, {arguments.other, arguments.other});
  return print_merge(merged, database.string(), arguments.other, arguments.json, streams);
}

}  // namespace

std::function<int()> make_merge(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<MergeArguments>();
  arguments->use = DatabaseUse::may_create;
  app.add_option("OTHER", arguments->other, "the other database, opened read-only")->required();
  app.add_option("--other-runs", arguments->other_runs, "its runs folder (default: next to it)");
  add_json_option(app, arguments->json, "print one JSON object");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return merge(*arguments, streams); };
}

}  // namespace petlab::cli
