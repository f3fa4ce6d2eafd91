#include "cli/exchange/gc.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/options/json_option.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "cli/output/counted.h"
#include "exchange/garbage.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

using exchange::Collected;
using exchange::Garbage;
using nlohmann::ordered_json;

struct GcArguments : StoredArguments {
  std::vector<std::string> kinds;
  bool dry_run = false;
  bool json = false;
};

ordered_json to_json(const Collected& done, const GcArguments& arguments,
                     const std::filesystem::path& runs) {
  ordered_json document = {{"db", arguments.database_path().string()},
                           {"runs", runs.string()},
                           {"dry_run", arguments.dry_run},
                           {"garbage", ordered_json::array()},
                           {"bytes", done.bytes},
                           {"running", done.running},
                           {"left", ordered_json::array()}};
  for (const Garbage& one : done.garbage) {
    ordered_json row = {{"kind", one.kind}};
    if (!one.trial.empty()) row["trial"] = one.trial;
    if (one.attempt > 0) row["attempt"] = one.attempt;
    row["file"] = one.file.string();
    row["bytes"] = one.bytes;
    row["why"] = one.why;
    document["garbage"].push_back(std::move(row));
  }
  for (const exchange::NotTaken& one : done.left) {
    document["left"].push_back({{"trial", one.trial}, {"text", one.text}});
  }
  return document;
}

void print_collected(const Collected& done, const GcArguments& arguments,
                     const std::filesystem::path& runs, Streams streams) {
  std::vector<std::vector<results::Value>> rows;
  for (const Garbage& one : done.garbage) {
    const auto below = one.file.lexically_relative(runs);
    rows.push_back({one.kind, bytes_text(one.bytes), below.string(), one.why});
  }
  if (!rows.empty()) AnswerOutput().print(streams.out, {"what", "size", "file", "why"}, rows);
  const std::string database = arguments.database_path().string();
  if (rows.empty()) {
    streams.out << database << ": nothing to remove\n";
  } else {
    streams.out << fmt::format(
        "{}: {}, {} of the disk, {}\n", database, counted(std::ssize(rows), "entry", "entries"),
        bytes_text(done.bytes), arguments.dry_run ? "could be removed" : "removed");
  }
  std::vector<std::string> notes;
  if (done.running > 0) {
    notes.push_back(
        fmt::format("{} with an open attempt {} skipped; petlab run cleans up dead attempts",
                    counted(done.running, "trial"), done.running == 1 ? "is" : "are"));
  }
  for (const exchange::NotTaken& one : done.left) {
    notes.push_back(fmt::format("{} is skipped: {}", one.trial, one.text));
  }
  print_notes(streams.err, notes);
}

int collect(const GcArguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  std::error_code error;
  if (!std::filesystem::exists(database, error)) {
    throw std::invalid_argument(fmt::format("{}: the database does not exist", database.string()));
  }
  const std::filesystem::path runs = arguments.existing_runs_path();
  exchange::GarbageOptions options;
  if (!arguments.kinds.empty()) {
    const auto wanted = [&](const char* kind) {
      return std::find(arguments.kinds.begin(), arguments.kinds.end(), kind) !=
             arguments.kinds.end();
    };
    options = {wanted("checkpoints"), wanted("artifacts"), wanted("leftovers")};
  }
  const Collected done = arguments.dry_run ? exchange::find_garbage(database, runs, options)
                                           : exchange::collect_garbage(database, runs, options);
  if (arguments.json) {
    streams.out << to_json(done, arguments, runs)
                       .dump(1, ' ', false, ordered_json::error_handler_t::replace)
                << "\n";
  } else {
    print_collected(done, arguments, runs, streams);
  }
  return kDone;
}

}  // namespace

std::function<int()> make_gc(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<GcArguments>();
  app.add_flag("--dry-run", arguments->dry_run, "show what would be deleted, and its size");
  app.add_option("--what", arguments->kinds, "what to delete, separated by commas (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"checkpoints", "artifacts", "leftovers"}));
  add_json_option(app, arguments->json, "print one JSON object");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return collect(*arguments, streams); };
}

}  // namespace petlab::cli
