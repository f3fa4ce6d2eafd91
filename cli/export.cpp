#include "cli/export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/counted.h"
#include "cli/trial_arguments.h"
#include "cli/version.h"
#include "orchestrator/exchange/archive.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

struct ArchiveArguments : StoredArguments {
  std::string file;
  std::string artifacts = "result";
  orchestrator::ArchiveOptions options;
  bool json = false;
};

const std::map<std::string, orchestrator::ArchivedArtifacts>& artifact_words() {
  static const std::map<std::string, orchestrator::ArchivedArtifacts> words = {
      {"result", orchestrator::ArchivedArtifacts::result},
      {"all", orchestrator::ArchivedArtifacts::all},
      {"none", orchestrator::ArchivedArtifacts::none}};
  return words;
}

void print_archived(const orchestrator::Archived& done, const ArchiveArguments& arguments,
                    Streams streams) {
  if (arguments.json) {
    nlohmann::ordered_json document = {{"file", arguments.file},
                                       {"sweeps", done.sweeps},
                                       {"trials", done.trials},
                                       {"attempts", done.attempts},
                                       {"files", done.files},
                                       {"bytes", done.bytes},
                                       {"archive_bytes", done.archive_bytes},
                                       {"digest", done.digest},
                                       {"left", nlohmann::ordered_json::array()}};
    for (const orchestrator::NotTaken& one : done.left) {
      document["left"].push_back({{"trial", one.trial}, {"text", one.text}});
    }
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  for (const orchestrator::NotTaken& one : done.left) {
    streams.err << "petlab: left: " << one.trial << " " << reports::printable(one.text) << "\n";
  }
  streams.out << fmt::format("{}: {}, {} ({}), {} of {} in {}\n{}\n", arguments.file,
                             counted(done.sweeps, "sweep"), counted(done.trials, "trial"),
                             counted(done.attempts, "attempt"), counted(done.files, "file"),
                             bytes_text(done.bytes), bytes_text(done.archive_bytes), done.digest);
}

int export_archive(ArchiveArguments arguments, Streams streams) {
  arguments.options.artifacts = artifact_words().at(arguments.artifacts);
  arguments.options.petlab = kVersion;
  const std::filesystem::path database = arguments.database_path();
  const results::Reader reader(database);
  const orchestrator::Archived done = orchestrator::write_archive(
      reader, database, arguments.existing_runs_path(), arguments.file, arguments.options);
  print_archived(done, arguments, streams);
  return done.left.empty() ? kDone : kSomeFailed;
}

}  // namespace

std::function<int()> make_export(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ArchiveArguments>();
  CLI::App* const archive = app.add_subcommand(
      "archive",
      "one file that petlab import reads on any machine: results, configuration, "
      "artifacts, digests");
  archive->add_option("FILE", arguments->file, "the new file, for example ablation.petlab.tar.gz")
      ->required();
  archive->add_option("--sweep", arguments->options.sweeps,
                      "sweeps to put in, with all their trials (default: all of the database)");
  archive
      ->add_option("--artifacts", arguments->artifacts,
                   "which artifacts: of the results, all, or none (default: result)")
      ->check(CLI::IsMember({"result", "all", "none"}));
  archive->add_flag("--checkpoints", arguments->options.checkpoints,
                    "also what unfinished trials can be gone on from");
  archive->add_flag("--json", arguments->json, "print one JSON object");
  add_stored_arguments(*archive, *arguments);
  app.require_subcommand(1);
  return [arguments, streams] { return export_archive(*arguments, streams); };
}

}  // namespace petlab::cli
