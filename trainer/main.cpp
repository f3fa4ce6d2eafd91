#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "trainer/commands.h"

int main(int argc, char** argv) {
  using namespace petlab::trainer;
  CLI::App app{"The worker: trains the trials in the given directories (docs/worker.md)."};
  app.name("petlab-trainer");
  bool describe = false;
  std::vector<std::string> folders;
  app.add_flag("--describe", describe, "Print name, version and numerics version as JSON");
  app.add_option("DIR", folders,
                 "Directories of attempts, each with its trial.json; - reads them from standard "
                 "input, one a line");

  PredictOptions predict;
  CLI::App* const predicting = app.add_subcommand(
      "predict", "Evaluate a trained artifact on its task's data, or predict for a file");
  predicting->add_option("--artifact", predict.artifact, "artifact.petl of a trial")->required();
  predicting->add_option("--backbone", predict.backbone,
                         "Folder or name of the backbone (default: as the trial says)");
  predicting->add_option("--data", predict.data_folders,
                         "Data folders (default: PETLAB_DATA, then PETLAB_HOME/data)");
  predicting->add_option("--task", predict.task_file,
                         "The task's declaration, where it is a user's");
  predicting->add_option("--split", predict.split, "train, validation or test")
      ->check(CLI::IsMember({"train", "validation", "test"}))
      ->capture_default_str();
  predicting->add_option("--input", predict.input,
                         "Predict for these texts instead: one a line, a pair separated by a tab");
  predicting->add_option("--threads", predict.threads, "Threads to compute with")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();

  TokenizeOptions tokenize;
  CLI::App* const tokenizing = app.add_subcommand(
      "tokenize", "Print a JSON line of token ids for each line of standard input");
  tokenizing->add_option("--backbone", tokenize.backbone, "Folder or name of the backbone")
      ->required();
  tokenizing->add_option("--max-tokens", tokenize.max_tokens, "Truncate to so many tokens; 0: none")
      ->check(CLI::NonNegativeNumber);

  ForwardOptions forward;
  CLI::App* const computing =
      app.add_subcommand("forward", "Compute every hidden state of a backbone");
  computing->add_option("--backbone", forward.backbone, "Folder or name of the backbone")
      ->required();
  computing
      ->add_option("--inputs", forward.inputs,
                   "safetensors file with input_ids, attention_mask and, if wanted, "
                   "token_type_ids (sequences, length)")
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
    if (*tokenizing) return run_tokenize(tokenize);
    if (*computing) return run_forward(forward);
    if (describe) return run_describe();
    if (folders.empty()) {
      std::cerr << app.help();
      return 2;
    }
    return run_worker(folders);
  } catch (const std::invalid_argument& e) {
    std::cerr << "petlab-trainer: " << e.what() << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "petlab-trainer: " << e.what() << "\n";
    return 1;
  }
}
