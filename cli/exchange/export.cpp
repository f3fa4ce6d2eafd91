#include "cli/exchange/export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>

#include "base/nearest_word.h"
#include "cli/exchange/export_tables.h"
#include "cli/exchange/new_folder.h"
#include "cli/options/json_option.h"
#include "cli/options/trial_arguments.h"
#include "cli/options/version.h"
#include "cli/output/answer_output.h"
#include "cli/output/counted.h"
#include "cli/output/flat_configuration.h"
#include "cli/output/shell_word.h"
#include "exports/tensorboard.h"
#include "orchestrator/exchange/archive.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

struct ArchiveArguments : StoredArguments {
  std::string archive;
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
    nlohmann::ordered_json document = {{"file", arguments.archive},
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
  streams.out << fmt::format("{}: {}, {} ({}), {} of {} in {}\n{}\n", arguments.archive,
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
      reader, database, arguments.existing_runs_path(), arguments.archive, arguments.options);
  print_archived(done, arguments, streams);
  return done.left.empty() ? kDone : kSomeFailed;
}

struct ExportArguments : StoredArguments {
  std::string folder;
  std::string format = "csv";
  std::string tensorboard;
  std::vector<std::string> sweeps;
  bool json = false;
};

// The fields of a trial's configuration as TensorBoard hyperparameters.
std::vector<exports::Hparam> hparams_of(const results::TrialRow& trial,
                                        const std::string& variant) {
  std::vector<exports::Hparam> all;
  if (!variant.empty()) all.emplace_back("variant", variant);
  for (const ConfigurationEntry& entry : flat_configuration(trial.config)) {
    if (entry.value.is_null()) continue;
    if (entry.value.is_boolean()) {
      all.emplace_back(entry.name, entry.value.get<bool>());
    } else if (entry.value.is_number()) {
      all.emplace_back(entry.name, entry.value.get<double>());
    } else if (entry.value.is_string()) {
      all.emplace_back(entry.name, entry.value.get<std::string>());
    } else {
      all.emplace_back(entry.name,
                       entry.value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
  if (trial.bls_bits) all.emplace_back("bls_bits", *trial.bls_bits);
  return all;
}

void print_exported(const ExportArguments& arguments, const std::vector<ExportedTable>& tables,
                    const std::optional<exports::TensorboardRuns>& runs, Streams streams) {
  if (arguments.json) {
    nlohmann::ordered_json document = nlohmann::ordered_json::object();
    if (!arguments.folder.empty()) {
      document["folder"] = arguments.folder;
      document["tables"] = nlohmann::ordered_json::array();
      for (const ExportedTable& one : tables) {
        document["tables"].push_back({{"file", one.name}, {"rows", one.rows}});
      }
    }
    if (runs) {
      document["tensorboard"] = {{"folder", arguments.tensorboard},
                                 {"runs", runs->runs},
                                 {"values", runs->values},
                                 {"without_events", runs->without_events}};
    }
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  std::vector<std::string> texts;
  for (const ExportedTable& one : tables) {
    texts.push_back(fmt::format("{} ({})", one.name, counted(one.rows, "row")));
  }
  if (!texts.empty()) {
    streams.out << fmt::format("{}: {}\n", arguments.folder, fmt::join(texts, ", "));
  }
  if (!runs) return;
  streams.out << fmt::format("{}: {}, {}; tensorboard --logdir {}\n", arguments.tensorboard,
                             counted(runs->runs, "run"), counted(runs->values, "value"),
                             shell_word(arguments.tensorboard));
  if (runs->without_events > 0) {
    print_notes(streams.err, {fmt::format("{} have no events.jsonl: their values carry their "
                                          "attempt's time, and their loss curves are missing",
                                          counted(runs->without_events, "run"))});
  }
}

int export_folders(const ExportArguments& arguments, Streams streams) {
  if (arguments.folder.empty() && arguments.tensorboard.empty()) {
    throw std::invalid_argument(
        "found neither a folder, --tensorboard nor archive FILE, expected one: petlab db export "
        "FOLDER "
        "writes tables");
  }
  const results::OneState state(arguments.database_path());
  const std::vector<std::string> all = state.reader().sweep_names();
  for (const std::string& sweep : arguments.sweeps) {
    if (std::find(all.begin(), all.end(), sweep) == all.end()) {
      throw std::invalid_argument(
          "--sweep: " + base::unknown_word("sweep", sweep,
                                           std::vector<std::string_view>(all.begin(), all.end())));
    }
  }
  std::optional<NewFolder> tables_folder;
  std::optional<NewFolder> runs_folder;
  if (!arguments.folder.empty()) tables_folder.emplace(arguments.folder);
  if (!arguments.tensorboard.empty()) runs_folder.emplace(arguments.tensorboard);
  std::vector<ExportedTable> tables;
  std::optional<exports::TensorboardRuns> runs;
  if (tables_folder) {
    tables = export_tables(state, tables_folder->path(), arguments.format, arguments.sweeps);
  }
  if (runs_folder) {
    runs = exports::write_tensorboard(
        runs_folder->path(), {state.reader(), state.scores(), arguments.runs_path(),
                              arguments.sweeps.empty() ? all : arguments.sweeps, hparams_of});
  }
  if (tables_folder) tables_folder->keep();
  if (runs_folder) runs_folder->keep();
  print_exported(arguments, tables, runs, streams);
  return kDone;
}

}  // namespace

std::function<int()> make_export(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ArchiveArguments>();
  CLI::App* const archive =
      app.add_subcommand("archive", "write one file that petlab db import reads on any machine");
  archive->add_option("FILE", arguments->archive, "the new file: ablation.petlab.tar.gz")
      ->required();
  add_sweep_option(*archive, arguments->options.sweeps, *arguments, streams,
                   "only this sweep: its name or file (repeatable)");
  archive
      ->add_option("--artifacts", arguments->artifacts,
                   "artifacts to include: those of results, all or none (default: result)")
      ->check(CLI::IsMember({"result", "all", "none"}));
  archive->add_flag("--checkpoints", arguments->options.checkpoints,
                    "include checkpoints of unfinished trials");
  add_json_option(*archive, arguments->json, "print one JSON object");
  add_stored_arguments(*archive, *arguments);
  const auto folders = std::make_shared<ExportArguments>();
  app.add_option("FOLDER", folders->folder, "a new folder for six tables, one file each");
  app.add_option("--format", folders->format, "the format of tables (default: csv)")
      ->check(CLI::IsMember({"csv", "json"}));
  app.add_option("--tensorboard", folders->tensorboard,
                 "a new folder for event files: tensorboard --logdir FOLDER");
  add_sweep_option(app, folders->sweeps, *folders, streams,
                   "only this sweep: its name or file (repeatable)");
  app.add_flag("--json", folders->json, "print one JSON object");
  add_stored_arguments(app, *folders);
  return [archive, arguments, folders, streams] {
    return archive->parsed() ? export_archive(*arguments, streams)
                             : export_folders(*folders, streams);
  };
}

}  // namespace petlab::cli
