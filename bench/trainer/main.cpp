// Times the trainer: training steps on given lengths (for train_step_peers.py --also), evaluation
// of examples of given lengths, start-up until ready to train (for startup_peers.py --also),
// training steps and generation of a T5 (for seq2seq_peers.py --also), the memory of each, and the
// products of a single layer. bench/trainer.sh runs it in turn with Python programs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "bench/trainer/meters.h"
#include "bench/trainer/rates.h"
#include "bench/trainer/text.h"
#include "sweeps/catalog.h"
#include "sweeps/locations.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/backbones/encoder.h"
#include "trainer/compute/device_kernels.h"
#include "trainer/compute/devices.h"
#include "trainer/compute/products.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/step.h"
#include "trainer/worker/product_choice.h"

using namespace petlab;
using namespace petlab::trainer;
using bench::process_kib;
using bench::Stopwatch;

namespace {

/// An encoder of RoBERTa-base's size with random weights.
Encoder random_encoder(const Placement& placement = {}) {
  EncoderConfig config;
  config.kind = EncoderKind::roberta;
  config.vocab_size = 50265;
  config.d_model = 768;
  config.num_layers = 12;
  config.num_heads = 12;
  config.d_ff = 3072;
  config.max_positions = 514;
  config.token_types = 1;
  config.pad_token_id = 1;
  config.layer_norm_eps = 1e-5;
  Encoder::Weights weights;
  std::uint64_t number = 0;
  for (const WantedTensor& wanted : encoder_tensors(config)) {
    Tensor tensor = at::empty(wanted.shape, at::kFloat);
    fill_normal(1, ++number, 0.02,
                {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
    if (wanted.name.ends_with("LayerNorm.weight")) tensor.fill_(1);
    weights.emplace(wanted.name, tensor.to(placement.computing()));
  }
  return Encoder(config, std::move(weights), placement);
}

std::vector<std::vector<std::int64_t>> read_lengths(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(file + ": cannot be opened");
  std::vector<std::vector<std::int64_t>> batches;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream numbers(line);
    std::vector<std::int64_t> lengths;
    for (std::int64_t length = 0; numbers >> length;) lengths.push_back(length);
    if (!lengths.empty()) batches.push_back(std::move(lengths));
  }
  return batches;
}

/// A split with examples of these lengths, in two classes.
TokenisedSplit split_of(const std::vector<std::vector<std::int64_t>>& batches) {
  TokenisedSplit split;
  split.offsets.push_back(0);
  for (const auto& lengths : batches) {
    for (const std::int64_t length : lengths) {
      for (std::int64_t i = 0; i < length; ++i) {
        split.ids.push_back(static_cast<std::int32_t>(100 + (split.ids.size() * 7919) % 20000));
      }
      split.offsets.push_back(static_cast<std::int64_t>(split.ids.size()));
      split.classes.push_back(static_cast<std::int32_t>(split.classes.size() % 2));
    }
  }
  split.type_ids.assign(split.ids.size(), 0);
  return split;
}

std::int64_t anonymous_kib() { return process_kib("smaps_rollup", "Anonymous:"); }

/// The trial that a worker trains, with CoLA's head: a ProPETL module or the full backbone.
sweeps::TrialConfig config_of(const std::string& kind) {
  sweeps::TrialConfig config = sweeps::default_config(kind);
  config.module.share = kind != "full_finetuning";
  config.module.mask = config.module.share ? metrics::MaskKind::learned : metrics::MaskKind::none;
  return config;
}

TrialModel trial_model(const Backbone& encoder) {
  return TrialModel(config_of("adapter"), {*sweeps::find_task("cola")}, encoder);
}

/// The options of `step`.
struct Steps {
  std::string lengths;   // a file
  std::string backbone;  // a folder; empty: RoBERTa-base's shape with random weights
  std::string module = "adapter";
  std::string device = "cpu";
  int threads = 1;
  int warm = 2;
  std::int64_t trials = 1;  // trained together
  bool bf16 = false;
  bool operations = false;  // LibTorch's operations in place of petlab's kernels, on a GPU
};

int time_steps(const Steps& of) {
  at::set_num_threads(of.threads);
  if (const auto missing = why_not_on(of.device)) throw std::runtime_error(*missing);
  if (of.operations) internal::set_device_kernels(at::kCUDA, nullptr);
  const Placement placement = placement_on(of.device, of.bf16);
  const std::unique_ptr<const Backbone> loaded =
      of.backbone.empty() ? std::make_unique<const Encoder>(random_encoder(placement))
                          : load_backbone(of.backbone, placement);
  const Backbone& encoder = *loaded;
  const std::vector<std::vector<std::int64_t>> batches = read_lengths(of.lengths);
  const TokenisedSplit split = split_of(batches);
  const SharedTasks tasks(std::vector<TaskRun>{{*sweeps::find_task("cola"), split, split, split}});
  sweeps::TrialConfig config = config_of(of.module);
  config.training.batch_size = static_cast<std::int64_t>(batches.front().size());
  config.training.steps = of.warm + static_cast<std::int64_t>(batches.size());
  std::vector<std::unique_ptr<TrainingTrial>> gang;
  std::vector<TrainingTrial*> trials;
  for (std::int64_t k = 0; k < of.trials; ++k) {
    config.seed = {static_cast<std::uint64_t>(42 + k)};
    gang.push_back(std::make_unique<TrainingTrial>(config, tasks, encoder, LoopObserver()));
    trials.push_back(gang.back().get());
  }

  const std::int64_t before_kib = process_kib("status", "VmRSS:");
  std::vector<double> seconds;
  double processor = 0;
  std::int64_t examples = 0;
  std::int64_t tokens = 0;
  double loss_value = 0;
  for (std::int64_t step = 0; step < config.training.steps; ++step) {
    const Stopwatch watch;
    loss_value = take_step(trials).sum().item<double>();
    const double taken = watch.seconds(), processor_taken = watch.processor_seconds();
    if (step >= of.warm) {
      seconds.push_back(taken);
      processor += processor_taken;
      for (TrainingTrial* const trial : trials) {
        const StepExamples drawn = trial->order().at(step);
        examples += static_cast<std::int64_t>(drawn.examples.size());
        for (const std::int64_t example : drawn.examples) tokens += split.tokens(example);
      }
    }
    for (TrainingTrial* const trial : trials) trial->finish_step();
  }
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::cout
      << nlohmann::ordered_json{{"examples_per_second", static_cast<double>(examples) / total},
                                {"tokens_per_second", static_cast<double>(tokens) / total},
                                {"examples_per_cpu_second",
                                 static_cast<double>(examples) / processor},
                                {"tokens_per_cpu_second", static_cast<double>(tokens) / processor},
                                {"steps", seconds.size()},
                                {"threads", of.threads},
                                {"products", to_string(product_libraries())},
                                {"module", of.module},
                                {"device", of.device},
                                {"trials", of.trials},
                                {"added_mib_peak",
                                 (process_kib("status", "VmHWM:") - before_kib) / 1024},
                                {"loss", loss_value}}
      << std::endl;
  return 0;
}

int time_evaluation(const std::string& file, int threads) {
  at::set_num_threads(threads);
  const Encoder encoder = random_encoder();
  TrialModel model = trial_model(encoder);
  const TokenisedSplit split = split_of(read_lengths(file));
  const std::atomic<bool> stop = false;
  TokenisedSplit first = split;  // compiles what a process compiles once, outside the timing
  first.offsets.resize(std::min<std::size_t>(first.offsets.size(), 33));
  first.ids.resize(static_cast<std::size_t>(first.offsets.back()));
  first.type_ids.resize(first.ids.size());
  first.classes.resize(first.offsets.size() - 1);
  model.merge(0);
  predict(model, 0, first, stop);
  const Stopwatch watch;
  model.merge(0);
  predict(model, 0, split, stop);
  const double seconds = watch.seconds();
  const double processor = watch.processor_seconds();
  const auto examples = static_cast<double>(split.size());
  std::cout << nlohmann::ordered_json{{"examples", split.size()},
                                      {"seconds", seconds},
                                      {"examples_per_second", examples / seconds},
                                      {"examples_per_cpu_second", examples / processor},
                                      {"threads", threads}}
            << std::endl;
  return 0;
}

/// Times everything before a trial's first step except reading its data.
int time_ready(const std::string& folder) {
  const Stopwatch watch;
  const Encoder encoder = Encoder::load(folder);
  TrialModel model = trial_model(encoder);
  AdamW optimizer(model.parameters(), {});
  optimizer.zero_gradients();
  model.merge(0);
  std::cout << nlohmann::ordered_json{{"ready_ms", watch.seconds() * 1e3}} << std::endl;
  return 0;
}

int time_load(const std::string& folder) {
  const std::int64_t before = anonymous_kib();
  const Stopwatch watch;
  const Encoder encoder = Encoder::load(folder);
  const double ready = watch.seconds();
  double sum = 0;
  for (const auto& [name, weight] : encoder.weights()) sum += weight.sum().item<double>();
  std::cout << nlohmann::ordered_json{{"ready_ms", ready * 1e3},
                                      {"read_ms", watch.seconds() * 1e3},
                                      {"anonymous_mib_before", before / 1024},
                                      {"anonymous_mib_after", anonymous_kib() / 1024},
                                      {"sum", sum}}
            << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times the trainer."};
  app.require_subcommand(1);
  std::string products;
  app.add_option("--products", products,
                 "Libraries of products, as PETLAB_PRODUCTS (default: timed at the start; before a "
                 "first step those that are "
                 "kept)");
  std::string lengths, folder, ready_folder;
  int threads = 1;
  Steps steps;
  CLI::App* const step = app.add_subcommand("step", "Training steps of RoBERTa-base's shape");
  step->add_option("--lengths", steps.lengths, "A batch a line, a token length an example")
      ->required();
  step->add_option("--backbone", steps.backbone, "An encoder's folder (default: that shape)");
  step->add_option("--threads", steps.threads, "Threads");
  step->add_option("--warm", steps.warm, "Steps before the clock starts");
  step->add_option("--module", steps.module, "adapter, lora, prefix, full_finetuning");
  step->add_option("--trials", steps.trials, "Trials that train together");
  step->add_option("--device", steps.device, "cpu or cuda");
  step->add_flag("--bf16", steps.bf16, "As training.compute: bf16");
  step->add_flag("--operations", steps.operations, "On a GPU: without petlab's kernels");
  CLI::App* const evaluate = app.add_subcommand("evaluate", "Predictions of a trained trial");
  evaluate->add_option("--lengths", lengths, "Token lengths of the examples")->required();
  evaluate->add_option("--threads", threads, "Threads");
  CLI::App* const ready = app.add_subcommand("ready", "Get ready for a trial's first step, exit");
  ready->add_option("FOLDER", ready_folder, "With config.json and model.safetensors")->required();
  CLI::App* const load = app.add_subcommand("load", "Get a checkpoint ready and read it once");
  load->add_option("FOLDER", folder, "With config.json and model.safetensors")->required();
  bench::TextSteps text_steps;
  CLI::App* const text_step = app.add_subcommand("text-step", "Training steps of a T5");
  text_step->add_option("--checkpoint", text_steps.checkpoint, "A T5's folder")->required();
  text_step->add_option("--pairs", text_steps.pairs, "A batch a line, source:target an example")
      ->required();
  text_step->add_option("--threads", text_steps.threads, "Threads");
  text_step->add_option("--warm", text_steps.warm, "Steps before the clock starts");
  bench::TextGeneration texts;
  CLI::App* const generate = app.add_subcommand("generate", "Texts of a T5");
  generate->add_option("--checkpoint", texts.checkpoint, "A T5's folder")->required();
  generate->add_option("--inputs", texts.inputs, "A JSON list of ids a line")->required();
  generate->add_option("--ids", texts.ids, "Where the texts' ids go")->required();
  generate->add_option("--threads", texts.threads, "Threads");
  generate->add_option("--batch", texts.batch, "Inputs at once");
  generate->add_option("--beams", texts.beams, "Beams");
  generate->add_option("--new-tokens", texts.new_tokens, "Tokens that a text has at most");
  bench::ProductRates rates;
  CLI::App* const alone = app.add_subcommand("products", "The products of such a layer alone");
  alone->add_option("--rows", rates.rows, "Tokens at once");
  alone->add_option("--threads", rates.threads, "Threads");
  alone->add_option("--turns", rates.turns, "Times that each is computed")
      ->check(CLI::PositiveNumber);
  alone->add_flag("--bf16", rates.bf16, "As training.compute: bf16");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto named = parse_product_libraries(products);
    if (!named && !products.empty()) throw std::runtime_error("--products: no such libraries");
    if (*ready && !named) {
      // As in a worker: looks up the choice that was measured on this machine before.
      const auto environment = sweeps::process_environment();
      use_product_libraries(choose_product_libraries(
          environment, sweeps::find_locations(environment).cache(), std::cerr));
    } else {
      use_product_libraries(named ? *named : measure_product_libraries());
    }
    if (*step) return time_steps(steps);
    if (*evaluate) return time_evaluation(lengths, threads);
    if (*ready) return time_ready(ready_folder);
    if (*load) return time_load(folder);
    if (*alone) bench::time_products(rates);
    if (*text_step) bench::time_text_steps(text_steps);
    if (*generate) bench::time_generation(texts);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "trainer_bench: " << e.what() << "\n";
    return 1;
  }
}
