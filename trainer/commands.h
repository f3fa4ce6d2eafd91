#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

// The commands of petlab-trainer, one function each. They return the exit code, and throw
// std::invalid_argument for wrong arguments and std::runtime_error for files.

/// Implements `--describe`.
int run_describe();

/// Trains the trials in `folders`. If it is "-", reads the folders from standard input.
int run_worker(const std::vector<std::string>& folders);

struct PredictOptions {
  std::filesystem::path artifact;
  std::string backbone;  // empty: the one in the artifact's configuration
  std::vector<std::filesystem::path> data_folders;  // empty: the folders of the environment
  /// Names of the artifact's tasks to predict (empty: all), and files that declare tasks that are
  /// not built in.
  std::vector<std::filesystem::path> tasks;
  std::string split = "test";
  std::filesystem::path input;  // empty: use the tasks' data
  std::string device = "cpu";   // cpu or cuda
  int threads = 1;
};
/// Prints a JSON object of metrics for each task. With `input`, prints one per line instead, with
/// the prediction and the head's outputs, or the text and its score.
int run_predict(const PredictOptions& options);

/// The name of the export format for fully fine-tuned backbones: a Hugging Face folder.
inline constexpr std::string_view kBackboneFormat = "huggingface";

struct ExportOptions {
  std::filesystem::path artifact;
  std::string format;    // one of module_formats(), or kBackboneFormat
  std::string backbone;  // empty: the one in the artifact's configuration
  std::string task;      // empty: the artifact's only task
  std::filesystem::path out;
};
/// Writes the artifact's module in the format of another library, with masks merged. Refuses the
/// same backbones as run_predict.
int run_export(const ExportOptions& options);

struct ImportOptions {
  std::string format;  // one of module_formats()
  std::filesystem::path from;
  std::string backbone;
  std::string task;  // built-in, or the file of a declaration; empty: "imported"
  std::filesystem::path out;
};
/// Converts another library's module to an artifact without sharing or masks.
int run_import(const ImportOptions& options);

struct InitOptions {
  std::filesystem::path config;              // config.json; its vocab_size is ignored
  std::vector<std::filesystem::path> texts;  // to build the vocabulary from
  std::int64_t vocabulary = 0;               // maximum number of pieces
  std::uint64_t seed = 42;                   // for the weights
  bool cased = false;                        // BERT: keep upper and lower case
  std::filesystem::path out;                 // a new folder
};
/// Writes a backbone with random weights and a new vocabulary: config.json, the tokenizer's files
/// and model.safetensors.
int run_init(const InitOptions& options);

struct TokenizeOptions {
  std::string backbone;
  std::int64_t max_tokens = 0;
};
int run_tokenize(const TokenizeOptions& options);

struct ForwardOptions {
  std::string backbone;
  std::filesystem::path inputs;
  std::filesystem::path out;
};
int run_forward(const ForwardOptions& options);

/// Joins the words as in "a, b, c".
std::string listed(const std::vector<std::string>& words);
/// Describes the outputs of a head with these labels: "negative, positive", or "a score" if there
/// are none.
std::string outputs_in_words(const std::vector<std::string>& labels);

}  // namespace petlab::trainer
