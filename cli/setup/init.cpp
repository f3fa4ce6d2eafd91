#include "cli/setup/init.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/nearest_word.h"
#include "cli/output/shell_word.h"
#include "cli/setup/task_starter.h"
#include "cli/setup/yaml_text.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"
#include "sweeps/hub_cache.h"
#include "sweeps/locations.h"
#include "sweeps/schema.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {
namespace {

struct InitArguments {
  std::string file = "sweep.yaml";
  std::string backbone;
  std::string task;
  bool worker = false;
};

// Written next to the sweep file, for editors.
constexpr std::string_view kSchemaFile = "sweep.schema.json";

std::vector<std::string> backbones_here(const sweeps::Locations& locations) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(locations.models(), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (std::filesystem::is_regular_file(entry->path() / "config.json", unreadable)) {
      names.push_back(entry->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  for (const sweeps::CachedModel& model : sweeps::cached_models(locations.hub, "")) {
    if (model.complete) names.push_back(model.repository);
  }
  return names;
}

std::vector<std::string> tasks_here(const sweeps::Locations& locations) {
  std::vector<std::string> names;
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    try {
      sweeps::find_task_files(task, locations.data_folders);
      names.push_back(task.name);
    } catch (const sweeps::Error&) {
      // The task's data is not on this machine.
    }
  }
  return names;
}

std::string chosen(const char* kind, const std::string& named, const std::vector<std::string>& here,
                   const char* how) {
  if (named.empty()) {
    if (!here.empty()) return here.front();
    throw sweeps::Error(fmt::format("found no {} on this machine; {}", kind, how));
  }
  if (std::find(here.begin(), here.end(), named) != here.end() ||
      named.find('/') != std::string::npos || named.ends_with(".yaml")) {
    return named;
  }
  throw std::invalid_argument(
      base::unknown_word(kind, named, std::vector<std::string_view>(here.begin(), here.end())));
}

std::string others(const std::vector<std::string>& here) {
  return fmt::format("{}", fmt::join(here, ", "));
}

// The sweep's name: the file's, so that several files in one folder are different sweeps.
std::string sweep_name(const std::filesystem::path& file) {
  std::string name = name_from(file.stem().string());
  return name.empty() || name == "sweep" ? "first" : name;
}

std::string sweep_text(const std::string& file, const std::string& backbone,
                       const std::string& task, const std::vector<std::string>& backbones,
                       const std::vector<std::string>& tasks) {
  std::string text = fmt::format(
      "# petlab plan {0} lists this file's trials, petlab run {0} trains them.\n"
      "sweep: {6}\n"
      "about: Sharing and masking an adapter, at equal storage\n"
      "base:                                  # what all trials have in common\n"
      "  # on this machine: {1}\n"
      "  backbone: {2}\n"
      "  # with data on this machine: {3}\n"
      "  task: {4}\n"
      "  module.kind: {7:<23} # {5}\n"
      "  training: {{epochs: 3, batch_size: 32, learning_rate: 1e-3}}\n"
      "  data: {{max_train_examples: 1000}}     # small, for a first look; 0 is all\n"
      "  # All further fields, with their defaults:\n",
      file, others(backbones), yaml_text(backbone), others(tasks), yaml_text(task),
      sweeps::find_field("module.kind")->wanted, yaml_text(sweep_name(file)),
      sweeps::default_kind());
  const std::vector<std::string_view> above = {"backbone",
                                               "module.kind",
                                               "training.epochs",
                                               "training.batch_size",
                                               "training.learning_rate",
                                               "data.max_train_examples",
                                               "seed"};
  for (const sweeps::Field& field : sweeps::fields()) {
    if (std::find(above.begin(), above.end(), field.name) != above.end()) continue;
    const std::string usual = sweeps::default_text(field);
    text += fmt::format(
        "  # {}: {}  # {}{}\n", field.name, usual.substr(0, usual.find(';')), field.help,
        field.use == sweeps::FieldUse::always ? std::string()
                                              : fmt::format(" ({})", sweeps::use_text(field)));
  }
  return text +
         "variants:                              # rows of the ablation\n"
         "  vanilla:    {module.share: false, module.mask: none,    module.bottleneck: 16}\n"
         "  propetl:    {module.share: true,  module.mask: learned, module.bottleneck: 16}\n"
         "  only_share: {module.share: true,  module.mask: none,    module.bottleneck: "
         "{match_storage_of: propetl}}\n"
         "grid:                                  # every combination\n"
         "  seed: 42..44\n"
         "# search: {training.learning_rate: 'log(1e-4, 1e-2)', trials: 20}  # random, or by: tpe\n"
         "# stop_early: {rule: halving, at: [1, 2], keep: 1/2}               # stop trials that "
         "lose\n";
}

// What depends on the choice of a backbone and a task is on lines with a mark.
constexpr std::string_view kWorkerText =
    R"("""A worker of petlab: train() is called once for each trial of the sweep."""
import random

import petlab

STEPS = 200
# What sweeps for this worker may set. petlab refuses everything else.
CATALOG = petlab.Catalog(
@backbone    backbones=(),  # trials have no backbone
    uses=(),  # none of petlab's own settings, such as training.epochs
    kinds=[petlab.Kind("model")],
    fields=[petlab.Field("fit.learning_rate", float, 0.1, "step size", min=0)],
    metrics=[petlab.Metric("distance", "lower")],
@task    tasks=[petlab.DeclaredTask("line", ["distance"])],
)


def train(trial: petlab.Trial) -> None:
@task    # Replace this with your training.
@data    # Replace this with your training. trial.tasks[0].files() are the data files.
    draw = random.Random(trial.config.seed)
    weight = draw.gauss(0, 1)
    for step in range(1, STEPS + 1):
        x = draw.uniform(-1, 1)
        error = weight * x - (3 * x + draw.gauss(0, 0.1))
        weight -= trial.config["fit.learning_rate"] * error * x
        trial.progress(step, STEPS, loss=error**2)
    trial.metric("distance", abs(weight - 3), split="test")
    trial.finish()


if __name__ == "__main__":
    petlab.Worker("worker", version="1", numerics="1", catalog=CATALOG).run(train)
)";

std::string worker_text(bool with_backbone, bool with_data) {
  std::string text;
  for (std::string_view rest = kWorkerText; !rest.empty();) {
    const std::size_t end = rest.find('\n') + 1;
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (line.starts_with("@")) {
      const std::size_t mark = line.find(' ');
      const std::string_view name = line.substr(1, mark - 1);
      const bool is_left_out = (name == "backbone" && with_backbone) ||
                               (name == "task" && with_data) || (name == "data" && !with_data);
      if (is_left_out) continue;
      line.remove_prefix(mark);
    }
    text += line;
  }
  return text;
}

std::string worker_sweep_text(const std::string& file, const std::string& command,
                              const std::string& backbone, const std::string& task) {
  return fmt::format(
      "# {0}\n"
      "sweep: {1}\n"
      "about: Two learning rates of a worker\n"
      "base:\n"
      "{2}"
      "  task: {3}\n"
      "variants:                              # the worker's catalog declares its fields\n"
      "  slow: {{fit.learning_rate: 0.01}}\n"
      "  fast: {{fit.learning_rate: 0.1}}\n"
      "grid:                                  # every combination\n"
      "  seed: 42..44\n",
      command, yaml_text(sweep_name(file)),
      backbone.empty() ? "" : fmt::format("  backbone: {}\n", yaml_text(backbone)),
      yaml_text(task));
}

struct NewFile {
  std::filesystem::path path;
  std::string text;
};

void require_new(const std::filesystem::path& file, const char* fix) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    throw std::invalid_argument(fmt::format("{}: already exists; {}", file.string(), fix));
  }
}

// Writes the sweep file and the others. Removes them again if `check` throws.
void write_files(const std::vector<NewFile>& files, const std::function<void()>& check) {
  for (const NewFile& file : files) require_new(file.path, "use it as it is, or move it away");
  try {
    for (const NewFile& file : files) base::write_file_atomically(file.path, file.text);
    check();
  } catch (...) {
    std::error_code error;
    for (const NewFile& file : files) std::filesystem::remove(file.path, error);
    throw;
  }
}

int init(const InitArguments& arguments, std::ostream& out) {
  const std::filesystem::path folder = std::filesystem::path(arguments.file).parent_path();
  const sweeps::Locations locations = sweeps::find_locations(sweeps::process_environment());
  const std::vector<std::string> backbones = backbones_here(locations);
  const std::vector<std::string> tasks = tasks_here(locations);
  require_new(arguments.file, "name another file");
  std::string backbone = arguments.backbone;
  if (!arguments.worker || !backbone.empty()) {
    backbone = chosen("backbone", arguments.backbone, backbones,
                      "petlab fetch backbone FacebookAI/roberta-base downloads one");
  }
  std::vector<NewFile> files;
  std::string task;
  std::string report;
  if (is_data_file(arguments.task)) {
    TaskStarter starter = starter_task(arguments.task, folder);
    task = starter.name + ".yaml";
    files.push_back({folder / task, std::move(starter.text)});
    report = fmt::format("{}: the task of {}; check its columns and labels\n",
                         files.back().path.string(), arguments.task);
  } else if (arguments.worker && arguments.task.empty()) {
    task = "line";  // the worker declares it
  } else {
    task = chosen("task", arguments.task, tasks, "petlab fetch data glue downloads some");
  }
  if (arguments.worker) {
    const bool with_data = !arguments.task.empty();
    files.push_back({folder / "worker.py", worker_text(!backbone.empty(), with_data)});
    const std::string command = "python3 " + shell_word(files.back().path.string());
    const std::string next =
        fmt::format("petlab run {} --worker {}", shell_word(arguments.file), shell_word(command));
    report += fmt::format("{}: the worker; it needs the Python package petlab (docs/python.md)\n",
                          files.back().path.string());
    files.push_back({arguments.file, worker_sweep_text(arguments.file, next, backbone, task)});
    write_files(files, [&] {
      if (!task.ends_with(".yaml")) return;
      // The worker alone knows its fields, and may lack its package here.
      sweeps::load_task(folder / task);
    });
    out << report
        << fmt::format("{}: 6 trials of the worker on {}; next: {}\n", arguments.file, task, next);
    return kDone;
  }
  const std::string schema_line = fmt::format("# yaml-language-server: $schema={}\n", kSchemaFile);
  files.push_back(
      {arguments.file, schema_line + sweep_text(arguments.file, backbone, task, backbones, tasks)});
  std::size_t trials = 0;
  write_files(files, [&] {
    // Read the result as `petlab plan` would: the given names may not be backbones or tasks.
    trials = sweeps::load_sweep(arguments.file, locations).trials.size();
  });
  const std::filesystem::path schema = folder / kSchemaFile;
  if (!std::filesystem::exists(schema)) {
    base::write_file_atomically(schema, sweeps::sweep_schema().dump(2) + "\n");
  }
  out << report
      << fmt::format("{}: {} trials of {} on {}; next: petlab plan {}\n", arguments.file, trials,
                     backbone, task, shell_word(arguments.file));
  return kDone;
}

}  // namespace

std::function<int()> make_init(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<InitArguments>();
  app.add_option("FILE", arguments->file, "the sweep file to write")->capture_default_str();
  app.add_option("--backbone", arguments->backbone,
                 "the backbone (default: the first on this machine; with --worker: none)");
  app.add_option("--task", arguments->task,
                 "the task, or a .tsv, .csv or .jsonl file to declare one for (default: the first "
                 "with data on this machine; with --worker: the worker's own)");
  app.add_flag("--worker", arguments->worker, "also write a training script: worker.py");
  return [arguments, streams] { return init(*arguments, streams.out); };
}

}  // namespace petlab::cli
