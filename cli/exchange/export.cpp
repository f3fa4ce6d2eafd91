#include "cli/exchange/export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <tuple>

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
#include "exchange/archive.h"
#include "exports/mlflow.h"
#include "exports/run.h"
#include "exports/tensorboard.h"
#include "exports/trackio.h"
#include "exports/wandb.h"
#include "reports/load.h"
#include "reports/text.h"
#include "reports/wanted.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;

struct ArchiveArguments : StoredArguments {
  std::string archive;
  std::string artifacts = "result";
  exchange::ArchiveOptions options;
  bool json = false;
};

const std::map<std::string, exchange::ArchivedArtifacts>& artifact_words() {
  static const std::map<std::string, exchange::ArchivedArtifacts> words = {
      {"result", exchange::ArchivedArtifacts::result},
      {"all", exchange::ArchivedArtifacts::all},
      {"none", exchange::ArchivedArtifacts::none}};
  return words;
}

void print_archived(const exchange::Archived& done, const ArchiveArguments& arguments,
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
    for (const exchange::NotTaken& one : done.left) {
      document["left"].push_back({{"trial", one.trial}, {"text", one.text}});
    }
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  for (const exchange::NotTaken& one : done.left) {
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
  const exchange::Archived done = exchange::write_archive(
      reader, database, arguments.existing_runs_path(), arguments.archive, arguments.options);
  print_archived(done, arguments, streams);
  return done.left.empty() ? kDone : kSomeFailed;
}

/// A tool that shows runs, and the option that writes its files.
struct RunFormat {
  std::string_view name;  // the option, and the key in JSON
  std::string_view help;
  std::string_view opened;  // the command that opens the folder {}
  /// Writes below a temporary folder, which then becomes `place`.
  std::unique_ptr<exports::RunWriter> (*writer)(const fs::path& folder, const fs::path& place);
};

constexpr RunFormat kRunFormats[] = {
    {"tensorboard", "a new folder for event files: tensorboard --logdir FOLDER",
     "tensorboard --logdir {}",
     [](const fs::path& folder, const fs::path&) -> std::unique_ptr<exports::RunWriter> {
       return std::make_unique<exports::TensorboardWriter>(folder);
     }},
    {"mlflow", "a new folder for MLflow: a file store (mlruns)",
     "MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {}",
     [](const fs::path& folder, const fs::path& place) -> std::unique_ptr<exports::RunWriter> {
       return std::make_unique<exports::MlflowWriter>(folder, place);
     }},
    {"trackio", "a new folder for trackio: TRACKIO_DIR=FOLDER trackio show",
     "TRACKIO_DIR={} trackio show",
     [](const fs::path& folder, const fs::path&) -> std::unique_ptr<exports::RunWriter> {
       return std::make_unique<exports::TrackioWriter>(folder);
     }},
    {"wandb-offline", "a new folder of W&B offline runs: wandb sync FOLDER", "wandb sync {}",
     [](const fs::path& folder, const fs::path&) -> std::unique_ptr<exports::RunWriter> {
       return std::make_unique<exports::WandbWriter>(folder);
     }},
};

struct ExportArguments : StoredArguments {
  std::string folder;
  std::string format = "csv";
  std::array<std::string, std::size(kRunFormats)> run_folders;  // empty: not wanted
  std::vector<std::string> sweeps;
  bool json = false;
};

/// The runs written for one tool.
struct ExportedRuns {
  const RunFormat& format;
  std::string folder;
  exports::Exported counts;
  std::int64_t without_events = 0;
};

std::vector<exports::Parameter> parameters_of(const results::TrialRow& trial) {
  std::vector<exports::Parameter> all;
  for (const ConfigurationEntry& entry : flat_configuration(trial.config)) {
    if (!entry.value.is_null()) all.emplace_back(entry.name, entry.value);
  }
  if (trial.bls_bits) all.emplace_back("bls_bits", *trial.bls_bits);
  return all;
}

// The states of the sweeps' trials, as in reports.
class States {
 public:
  States(const results::Reader& reader, const std::vector<std::string>& sweeps,
         const results::IsAlive& alive) {
    reports::Wanted wanted;
    wanted.series = [](const reports::Series&) { return false; };
    wanted.trial = [](const reports::Trial&) { return false; };
    for (const reports::Trial& trial :
         reports::load_dataset(reader, sweeps, wanted, alive).trials) {
      states_.emplace(std::tuple(trial.sweep, trial.variant, trial.id), trial.state);
    }
  }
  const std::string& operator()(const std::string& sweep,
                                const results::SweepRow::Member& member) const {
    return states_.at({sweep, member.variant, member.trial_id});
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::string> states_;
};

// Fills the folders of the wanted formats in one pass over the trials.
std::vector<ExportedRuns> export_runs(const ExportArguments& arguments,
                                      const results::OneState& state,
                                      const std::vector<std::string>& sweeps) {
  struct Wanted {
    const RunFormat& format;
    std::string folder;
    std::unique_ptr<NewFolder> made;
    std::unique_ptr<exports::RunWriter> writer;
  };
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < std::size(kRunFormats); ++i) {
    const std::string& folder = arguments.run_folders.at(i);
    if (folder.empty()) continue;
    auto made = std::make_unique<NewFolder>(folder);
    auto writer = kRunFormats[i].writer(made->path(), fs::absolute(folder).lexically_normal());
    wanted.push_back({kRunFormats[i], folder, std::move(made), std::move(writer)});
  }
  std::vector<ExportedRuns> done;
  if (wanted.empty()) return done;
  const fs::path runs = arguments.runs_path();
  const States states(state.reader(), sweeps, living_in(runs));
  const std::int64_t without_events =
      exports::each_run({state.reader(), state.scores(), runs, sweeps, parameters_of, states},
                        [&](const exports::Run& run) {
                          for (const Wanted& one : wanted) one.writer->write(run);
                        });
  for (const Wanted& one : wanted) {
    one.writer->close();
    done.push_back({one.format, one.folder, one.writer->exported(), without_events});
  }
  for (const Wanted& one : wanted) one.made->keep();
  return done;
}

void print_exported(const ExportArguments& arguments, const std::vector<ExportedTable>& tables,
                    const std::vector<ExportedRuns>& runs, Streams streams) {
  if (arguments.json) {
    nlohmann::ordered_json document = nlohmann::ordered_json::object();
    if (!arguments.folder.empty()) {
      document["folder"] = arguments.folder;
      document["tables"] = nlohmann::ordered_json::array();
      for (const ExportedTable& one : tables) {
        document["tables"].push_back({{"file", one.name}, {"rows", one.rows}});
      }
    }
    for (const ExportedRuns& one : runs) {
      document[std::string(one.format.name)] = {{"folder", one.folder},
                                                {"runs", one.counts.runs},
                                                {"values", one.counts.values},
                                                {"without_events", one.without_events}};
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
  for (const ExportedRuns& one : runs) {
    streams.out << fmt::format(
        "{}: {}, {}; {}\n", one.folder, counted(one.counts.runs, "run"),
        counted(one.counts.values, "value"),
        fmt::format(fmt::runtime(one.format.opened), shell_word(one.folder)));
  }
  if (!runs.empty() && runs.front().without_events > 0) {
    print_notes(streams.err, {fmt::format("{} have no events.jsonl: their values carry their "
                                          "attempt's time, and their loss curves are missing",
                                          counted(runs.front().without_events, "run"))});
  }
}

int export_folders(const ExportArguments& arguments, Streams streams) {
  const auto& run_folders = arguments.run_folders;
  if (arguments.folder.empty() &&
      std::all_of(run_folders.begin(), run_folders.end(),
                  [](const std::string& folder) { return folder.empty(); })) {
    std::string options;
    for (const RunFormat& format : kRunFormats) options += fmt::format("--{}, ", format.name);
    throw std::invalid_argument(fmt::format(
        "found neither a folder, {}nor archive FILE, expected one: petlab db export FOLDER writes "
        "tables",
        options));
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
  std::vector<ExportedTable> tables;
  if (!arguments.folder.empty()) {
    tables_folder.emplace(arguments.folder);
    tables = export_tables(state, tables_folder->path(), arguments.format, arguments.sweeps);
  }
  const std::vector<ExportedRuns> runs =
      export_runs(arguments, state, arguments.sweeps.empty() ? all : arguments.sweeps);
  if (tables_folder) tables_folder->keep();
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
  for (std::size_t i = 0; i < std::size(kRunFormats); ++i) {
    app.add_option(fmt::format("--{}", kRunFormats[i].name), folders->run_folders.at(i),
                   std::string(kRunFormats[i].help));
  }
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
