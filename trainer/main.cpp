#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/shown.h"
#include "base/standard_output.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/commands.h"
#include "trainer/compute/error_text.h"

namespace {

using namespace petlab::trainer;

int run(int argc, char** argv, bool& is_worker) {
  CLI::App app{
      "The worker: trains the trials in the given directories "
      "(docs/reference/worker-protocol.md)."};
  app.name("petlab-trainer");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "petlab-trainer: " + petlab::base::printable_message(error.what()) + " (see --help)\n";
  });
  bool describe = false;
  std::vector<std::string> folders;
  app.add_flag("--describe", describe, "Print name, version and numerics version as JSON");
  app.add_option(
      "DIR", folders,
      "Attempt folders, each with a trial.json; - reads them from standard input, one per line");

  PredictOptions predict;
  CLI::App* const predicting = app.add_subcommand(
      "predict", "Evaluate a trained artifact on its task's data, or predict for a file");
  predicting->add_option("--artifact", predict.artifact, "artifact.petl of a trial")->required();
  predicting->add_option("--backbone", predict.backbone,
                         "Folder or name of the backbone (default: the trial's)");
  predicting->add_option("--data", predict.data_folders,
                         "Data folders (default: PETLAB_DATA, then PETLAB_HOME/data)");
  predicting->add_option("--task", predict.tasks,
                         "A task of the artifact (default: all), or a declaration file for a task "
                         "that is not built in");
  predicting->add_option("--split", predict.split, "train, validation or test")
      ->check(CLI::IsMember({"train", "validation", "test"}))
      ->capture_default_str();
  predicting->add_option("--input", predict.input,
                         "Predict for these texts instead: one per line, pairs separated by a tab");
  predicting->add_option("--device", predict.device, "Device to compute on: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  predicting->add_option("--threads", predict.threads, "Threads to compute with")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();

  std::string formats;
  for (const ModuleFormat& format : module_formats()) {
    formats +=
        (formats.empty() ? "" : "; ") + std::string(format.name) + ": " + std::string(format.help);
  }
  ExportOptions exported;
  CLI::App* const exporting =
      app.add_subcommand("export", "Write an artifact's module in another library's format");
  exporting->add_option("--artifact", exported.artifact, "artifact.petl of a trial")->required();
  exporting
      ->add_option("--format", exported.format,
                   formats + "; " + std::string(kBackboneFormat) +
                       ": a fully fine-tuned backbone as a separate folder")
      ->required();
  exporting->add_option("--out", exported.out, "Folder to write")->required();
  exporting->add_option("--task", exported.task,
                        "Task whose masks and head to export, if there are several");
  exporting->add_option("--backbone", exported.backbone,
                        "Folder or name of the backbone (default: the trial's)");

  ImportOptions imported;
  CLI::App* const importing =
      app.add_subcommand("import", "Create an artifact from another library's module");
  importing->add_option("--format", imported.format, formats)->required();
  importing->add_option("--from", imported.from, "Folder to read")->required();
  importing->add_option("--backbone", imported.backbone, "Folder or name of the backbone")
      ->required();
  importing->add_option("--out", imported.out, "Artifact to write")->required();
  importing->add_option("--task", imported.task,
                        "Task of the head: a built-in one, or a declaration file");

  InitOptions init;
  CLI::App* const initialising =
      app.add_subcommand("init", "Create a random backbone and a vocabulary from your texts");
  initialising
      ->add_option("--config", init.config, "Its config.json with kind (model_type) and sizes")
      ->required();
  initialising->add_option("--texts", init.texts, "Text files to build the vocabulary from")
      ->required();
  initialising->add_option("--vocabulary", init.vocabulary, "Maximum vocabulary size")
      ->required()
      ->check(CLI::Range(4, 1'000'000));
  initialising->add_option("--seed", init.seed, "Seed of the weights")->capture_default_str();
  initialising->add_flag("--cased", init.cased, "BERT: distinguish capitals and accents");
  initialising->add_option("--out", init.out, "A new folder to write")->required();

  TokenizeOptions tokenize;
  CLI::App* const tokenizing = app.add_subcommand(
      "tokenize", "Print a JSON line of token ids for each line of standard input");
  tokenizing->add_option("--backbone", tokenize.backbone, "Folder or name of the backbone")
      ->required();
  tokenizing
      ->add_option("--max-tokens", tokenize.max_tokens, "Truncate to this many tokens; 0: no limit")
      ->check(CLI::Range(0, 1'000'000));

  ForwardOptions forward;
  CLI::App* const computing =
      app.add_subcommand("forward", "Compute every hidden state of a backbone");
  computing->add_option("--backbone", forward.backbone, "Folder or name of the backbone")
      ->required();
  computing
      ->add_option("--inputs", forward.inputs,
                   "safetensors file with input_ids, attention_mask and optionally token_type_ids "
                   "(sequences, length)")
      ->required();
  computing->add_option("--out", forward.out, "safetensors file to write hidden_states.0 … to")
      ->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (*predicting) return run_predict(predict);
    if (*exporting) return run_export(exported);
    if (*importing) return run_import(imported);
    if (*initialising) return run_init(init);
    if (*tokenizing) return run_tokenize(tokenize);
    if (*computing) return run_forward(forward);
    if (describe) return run_describe();
    if (folders.empty()) {
      std::cerr << app.help();
      return 2;
    }
    is_worker = true;
    return run_worker(folders);
  } catch (const std::invalid_argument& e) {
    std::cerr << "petlab-trainer: " << petlab::base::printable_message(e.what()) << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "petlab-trainer: " << petlab::base::printable_message(message_of(e)) << "\n";
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  throw_on_failed_allocation();
  petlab::base::StandardOutput output;
  bool is_worker = false;
  const int code = run(argc, argv, is_worker);
  // A worker's results are its events; its output is only a log.
  return is_worker ? code : output.end("petlab-trainer", code);
}
