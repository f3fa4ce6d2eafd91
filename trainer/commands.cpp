#include "trainer/commands.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/utf8.h"
#include "metrics/t5_labels.h"
#include "protocol/trial_directory.h"
#include "sweeps/catalog.h"
#include "sweeps/locations.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/artifact/own_backbone.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/backbones/padded.h"
#include "trainer/compute/device_kernels.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/error.h"
#include "trainer/files/safetensors.h"
#include "trainer/training/text_objective.h"
#include "trainer/worker/product_choice.h"
#include "trainer/worker/stop.h"
#include "trainer/worker/worker.h"

namespace petlab::trainer {

std::string listed(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

std::string outputs_in_words(const std::vector<std::string>& labels) {
  return labels.empty() ? "a score" : listed(labels);
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::filesystem::path folder_of(const std::string& backbone) {
  return sweeps::backbone_folder(sweeps::find_locations(sweeps::process_environment()), backbone,
                                 std::filesystem::current_path());
}

/// Returns the folder for digests of files, the choice of product libraries and compiled kernels.
/// Without a home directory it is empty, and these are kept in memory only. A worker needs no home,
/// because a trial's paths are absolute.
std::filesystem::path digest_cache() {
  try {
    return sweeps::find_locations(sweeps::process_environment()).cache();
  } catch (const std::invalid_argument&) {
    return {};
  }
}

/// Chooses the libraries for matrix products and the folder for compiled GPU kernels. Throws as
/// choose_product_libraries.
void prepare_computation(std::ostream& log) {
  if (const auto cache = digest_cache(); !cache.empty()) keep_kernels_in(cache / "kernels");
  use_product_libraries(
      choose_product_libraries(sweeps::process_environment(), digest_cache(), log));
}

/// Splits a line of standard input into directories: one, or a gang separated by tabs.
std::vector<std::string> gang_of(const std::string& line) {
  std::vector<std::string> folders;
  std::size_t from = 0;
  while (from <= line.size()) {
    const std::size_t to = std::min(line.find('\t', from), line.size());
    if (to > from) folders.push_back(line.substr(from, to - from));
    from = to + 1;
  }
  return folders;
}

/// A task declaration with the artifact's labels, sufficient to predict for the user's texts.
sweeps::TaskDeclaration labelled_task(const std::string& name, const Artifact& artifact) {
  sweeps::TaskDeclaration task;
  task.name = name;
  const auto labels = artifact.labels.find(name);
  if (labels != artifact.labels.end()) task.classes = labels->second;
  if (task.classes.empty()) task.kind = sweeps::TaskKind::regression;
  return task;
}

/// Throws unless the task's classes are those that the head was trained with, in the same order.
void require_trained_labels(const sweeps::TaskDeclaration& task, const std::string& from,
                            const Artifact& artifact) {
  const auto labels = artifact.labels.find(task.name);
  if (labels == artifact.labels.end()) {
    throw Error("the artifact has no labels of task " + task.name);
  }
  if (task.classes == labels->second) return;
  throw std::invalid_argument(
      from + " has the labels " + outputs_in_words(task.classes) +
      ", must have those of the artifact: " + outputs_in_words(labels->second));
}

bool is_task_of(const sweeps::TrialConfig& config, const std::string& name) {
  return std::find(config.tasks.begin(), config.tasks.end(), name) != config.tasks.end();
}

/// The indices of the artifact's tasks that the user named; all tasks if none are named.
std::vector<std::size_t> chosen_tasks(const sweeps::TrialConfig& config,
                                      const PredictOptions& options) {
  std::vector<std::size_t> all;
  std::vector<std::size_t> named;
  for (std::size_t t = 0; t < config.tasks.size(); ++t) {
    all.push_back(t);
    const auto found = std::find(options.tasks.begin(), options.tasks.end(), config.tasks[t]);
    if (found != options.tasks.end()) named.push_back(t);
  }
  return named.empty() ? all : named;
}

std::vector<sweeps::TaskDeclaration> tasks_of(const sweeps::TrialConfig& config,
                                              const PredictOptions& options,
                                              const Artifact& artifact, bool texts) {
  std::map<std::string, sweeps::TaskDeclaration> declared;
  for (const std::filesystem::path& file : options.tasks) {
    if (is_task_of(config, file.string())) continue;
    sweeps::TaskDeclaration task = sweeps::load_task(file);
    if (!is_task_of(config, task.name)) {
      throw std::invalid_argument("--task " + file.string() + " declares " + task.name +
                                  ", must be a task of the artifact: " + listed(config.tasks));
    }
    require_trained_labels(task, "--task " + file.string(), artifact);
    declared[task.name] = std::move(task);
  }
  std::vector<sweeps::TaskDeclaration> tasks;
  for (const std::string& name : config.tasks) {
    if (const auto found = declared.find(name); found != declared.end()) {
      tasks.push_back(found->second);
    } else if (const sweeps::TaskDeclaration* const known = sweeps::find_task(name)) {
      require_trained_labels(*known, "the built-in task " + name, artifact);
      tasks.push_back(*known);
    } else if (!options.input.empty() && !texts) {
      tasks.push_back(labelled_task(name, artifact));
    } else {
      throw std::invalid_argument("task " + name +
                                  " is not built in: name its declaration with --task");
    }
  }
  return tasks;
}

Split read_lines(const std::filesystem::path& file) {
  std::error_code unknown;
  if (std::filesystem::is_directory(file, unknown)) {
    throw Error(file.string() + ": is a folder, must be a text file");
  }
  std::ifstream stream(file);
  if (!stream) throw Error(file.string() + ": cannot be opened");
  Split split;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (const auto invalid = base::first_invalid_utf8(line)) {
      throw Error(file.string() + ":" + std::to_string(split.examples.size() + 1) + ": byte " +
                  std::to_string(*invalid + 1) + " of the line is not UTF-8");
    }
    Example example;
    const std::size_t tab = line.find('\t');
    example.text = line.substr(0, tab);
    if (tab != std::string::npos) example.pair = line.substr(tab + 1);
    split.examples.push_back(std::move(example));
  }
  if (stream.bad()) throw Error(file.string() + ": cannot be read completely");
  return split;
}

/// A text-to-text model's output as JSON: the text and, for tasks with classes or scores, the class
/// or score that it stands for.
ordered_json written_text(const sweeps::TaskDeclaration& task, const std::string& text,
                          double text_score) {
  ordered_json line = ordered_json::object();
  if (task.kind == sweeps::TaskKind::classification) {
    const auto answer = class_of_text(task, text);
    line["label"] = answer ? ordered_json(task.classes[static_cast<std::size_t>(*answer)])
                           : ordered_json(nullptr);
  } else if (task.kind == sweeps::TaskKind::regression) {
    const auto answer = metrics::parse_score_text(text);
    line["score"] = answer ? ordered_json(*answer) : ordered_json(nullptr);
  }
  line["text"] = text;
  line["text_score"] = text_score;
  return line;
}

void print_predictions(const sweeps::TaskDeclaration& task, const Predictions& predictions) {
  for (std::size_t i = 0; i < predictions.texts.size(); ++i) {
    std::cout << written_text(task, predictions.texts[i], predictions.text_scores[i]) << "\n";
  }
  if (!predictions.texts.empty()) return;
  const std::size_t outputs = static_cast<std::size_t>(predictions.outputs);
  for (std::size_t i = 0; i < predictions.logits.size() / outputs; ++i) {
    const float* const example_logits = predictions.logits.data() + i * outputs;
    if (task.kind == sweeps::TaskKind::regression) {
      std::cout << ordered_json{{"score", predictions.scores[i]}} << "\n";
    } else {
      const auto predicted = static_cast<std::size_t>(predictions.classes[i]);
      std::cout << ordered_json{{"label", task.classes[predicted]},
                                {"logits",
                                 std::vector<float>(example_logits, example_logits + outputs)}}
                << "\n";
    }
  }
}

}  // namespace

int run_describe() {
  std::cout << describe_worker() << std::endl;
  return 0;
}

int run_worker(const std::vector<std::string>& folders) {
  listen_for_signals();
  prepare_computation(std::cout);
  const std::atomic<bool>& stop = stop_requested();
  BackboneStore backbones(digest_cache());
  const bool announced = folders == std::vector<std::string>{"-"};
  InputLines lines;
  auto given = folders.begin();
  const auto next = [&]() -> std::optional<std::vector<std::string>> {
    if (!announced) {
      if (given == folders.end()) return std::nullopt;
      return std::vector{*given++};
    }
    const std::optional<std::string> line = lines.next();
    return line ? std::optional(gang_of(*line)) : std::nullopt;
  };
  const auto train = [&](const std::vector<std::string>& gang) {
    for (const std::string& folder : gang) {
      if (announced) std::cout << protocol::announcement(folder) << std::flush;
    }
    return train_gang({gang.begin(), gang.end()}, backbones, stop, system_clock(), std::cout);
  };
  const int code = train_gangs(next, train, stop);
  if (code == kDeviceFailed) {
    // Exits without destructors: freeing memory on a failed device may throw or block for ever.
    std::cout << std::flush;
    std::_Exit(code);
  }
  return code;
}

int run_predict(const PredictOptions& options) {
  prepare_computation(std::cerr);
  at::set_num_threads(options.threads);
  const Artifact artifact = read_artifact(options.artifact);
  const sweeps::TrialConfig config = sweeps::trial_config_from_json(json::parse(artifact.config));
  const auto folder = folder_of(options.backbone.empty() ? config.backbone : options.backbone);
  const sweeps::Locations locations = sweeps::find_locations(sweeps::process_environment());
  require_own_backbone(artifact, folder, locations.cache());
  const auto backbone = BackboneStore(locations.cache())
                            .get(folder, placement_for(config.training, options.device,
                                                       sweeps::process_environment()));
  const bool texts = is_text_to_text(*backbone->model);
  const std::vector<sweeps::TaskDeclaration> tasks = tasks_of(config, options, artifact, texts);
  const std::vector<std::size_t> chosen = chosen_tasks(config, options);
  TrialModel model = load_model(artifact, config, tasks, backbone->pretrained());
  const std::atomic<bool>& stop = stop_requested();
  if (!options.input.empty()) {
    if (chosen.size() != 1) {
      throw std::invalid_argument("--input needs one task, named with --task: found " +
                                  listed(config.tasks));
    }
    const std::size_t t = chosen.front();
    model.merge(t);
    Split lines = read_lines(options.input);
    lines.kind = tasks[t].kind;
    const TokenisedSplit split = tokenise_inputs(lines, tasks[t], config.data, *backbone);
    print_predictions(tasks[t], predict(model, t, split, stop));
    return 0;
  }
  const std::vector<TaskRun> runs = load_tasks(
      tasks, config.data,
      options.data_folders.empty() ? locations.data_folders : options.data_folders, *backbone);
  for (const std::size_t t : chosen) {
    const TokenisedSplit& split = options.split == "train"        ? runs[t].train
                                  : options.split == "validation" ? runs[t].validation
                                                                  : runs[t].test;
    model.merge(t);
    const Scores scores = model.objective(t).score(split, predict(model, t, split, stop));
    ordered_json metrics = ordered_json::object();
    for (const auto& [name, value] : scores.metrics) {
      metrics[name] = value ? ordered_json(*value) : ordered_json(nullptr);
    }
    std::cout << ordered_json{{"trial", artifact.trial_id},
                              {"step", artifact.step},
                              {"task", tasks[t].name},
                              {"split", options.split},
                              {"metrics", metrics}}
              << "\n";
  }
  return 0;
}

int run_tokenize(const TokenizeOptions& options) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder_of(options.backbone));
  std::int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    try {
      std::cout << json(tokenizer->encode(line, std::nullopt, options.max_tokens).ids) << "\n";
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument("line " + std::to_string(number) + ": " + e.what());
    }
  }
  // std::cin reads through stdin and takes a read error for the end of input.
  if (std::cin.bad() || std::ferror(stdin) != 0) {
    throw Error("standard input: cannot be read completely");
  }
  return 0;
}

int run_forward(const ForwardOptions& options) {
  const std::unique_ptr<const Backbone> backbone = load_backbone(folder_of(options.backbone));
  const SafetensorsFile inputs = SafetensorsFile::open(options.inputs);
  const Tensor mask = to_tensor(inputs.tensor("attention_mask"));
  const Tensor types =
      inputs.contains("token_type_ids") ? to_tensor(inputs.tensor("token_type_ids")) : Tensor();
  const EncoderInput input =
      pack_padded(to_tensor(inputs.tensor("input_ids")), mask, types, *backbone);
  std::vector<Tensor> hidden;
  const at::NoGradGuard no_grad;
  backbone->encode(input, Hooks(), LastLayer::all_tokens, nullptr, &hidden);
  std::vector<std::pair<std::string, TensorView>> out;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    out.emplace_back("hidden_states." + std::to_string(i), to_view(unpack_padded(hidden[i], mask)));
  }
  write_safetensors(options.out, out);
  return 0;
}

}  // namespace petlab::trainer
