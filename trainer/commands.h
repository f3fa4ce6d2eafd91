#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::trainer {

// What petlab-trainer does, one function a command. Each returns the exit code and throws
// std::invalid_argument for what the user wrote, std::runtime_error for files.

/// `--describe`
int run_describe();

/// Trains the trials in `folders`, or in those that standard input names where it is "-".
int run_worker(const std::vector<std::string>& folders);

struct PredictOptions {
  std::filesystem::path artifact;
  std::string backbone;                             // empty: as the artifact's configuration says
  std::vector<std::filesystem::path> data_folders;  // empty: those of the environment
  /// Names of the artifact's tasks, of which the others are left out; and files of declarations, of
  /// tasks that are not built in.
  std::vector<std::filesystem::path> tasks;
  std::string split = "test";
  std::filesystem::path input;  // empty: the tasks' data
  std::string device = "cpu";   // or cuda
  int threads = 1;
};
/// Prints a JSON object of metrics for each task, or one a line of `input` with what is predicted
/// and the head's outputs, or the text and its score.
int run_predict(const PredictOptions& options);

/// The name of a format of fully fine-tuned backbones: a Hugging Face folder.
inline constexpr std::string_view kBackboneFormat = "huggingface";

struct ExportOptions {
  std::filesystem::path artifact;
  std::string format;    // a name of module_formats(), or kBackboneFormat
  std::string backbone;  // empty: as the artifact's configuration says
  std::string task;      // empty: the artifact's only one
  std::filesystem::path out;
};
/// Writes the artifact's module, masks merged, as another library keeps it. Refuses the backbones
/// that run_predict refuses.
int run_export(const ExportOptions& options);

struct ImportOptions {
  std::string format;  // a name of module_formats()
  std::filesystem::path from;
  std::string backbone;
  std::string task;  // built-in, or the file of a declaration; empty: one called "imported"
  std::filesystem::path out;
};
/// The opposite: an artifact that shares and masks nothing.
int run_import(const ImportOptions& options);

struct InitOptions {
  std::filesystem::path config;              // config.json; its vocab_size does not count
  std::vector<std::filesystem::path> texts;  // what the vocabulary is made of
  std::int64_t vocabulary = 0;               // pieces, at most
  std::uint64_t seed = 42;                   // of the weights
  bool cased = false;                        // BERT: words as they are written
  std::filesystem::path out;                 // a new folder
};
/// Writes a T5, BERT or RoBERTa of random weights with a vocabulary of its own: config.json, the
/// tokenizer's files, model.safetensors.
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

/// "a, b, c".
std::string listed(const std::vector<std::string>& words);
/// What a head with these labels gives: "negative, positive", or "a score" where there are none.
std::string outputs_in_words(const std::vector<std::string>& labels);

}  // namespace petlab::trainer
