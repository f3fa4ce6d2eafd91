#include "bench/trainer/text.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "bench/trainer/meters.h"
#include "sweeps/catalog.h"
#include "trainer/backbones/generation.h"
#include "trainer/backbones/t5.h"
#include "trainer/compute/products.h"
#include "trainer/compute/tensors.h"
#include "trainer/modules/module.h"
#include "trainer/training/optimizer.h"

namespace petlab::bench {
namespace {

using namespace petlab::trainer;

std::unique_ptr<Module> propetl_adapter(const T5& model) {
  ModuleRequest request;
  request.config = sweeps::default_config("adapter").module;
  request.config.share = true;
  request.config.mask = metrics::MaskKind::learned;
  request.seed = 42;
  return make_module(request, model);
}

struct TextLengths {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

std::vector<std::vector<TextLengths>> read_pairs(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(file + ": cannot be opened");
  std::vector<std::vector<TextLengths>> batches;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::vector<TextLengths> batch;
    TextLengths pair;
    for (char colon = 0; words >> pair.source >> colon >> pair.target;) batch.push_back(pair);
    if (!batch.empty()) batches.push_back(std::move(batch));
  }
  if (batches.empty()) throw std::runtime_error(file + ": no batch");
  return batches;
}

void append(PackedSequences& sequences, std::int64_t tokens) {
  for (std::int64_t i = 0; i < tokens; ++i) {
    sequences.ids.push_back(3 + (static_cast<std::int64_t>(sequences.ids.size()) * 7919) % 31900);
  }
  sequences.offsets.push_back(static_cast<std::int64_t>(sequences.ids.size()));
  sequences.examples.push_back(static_cast<std::int64_t>(sequences.examples.size()));
  sequences.trial_sequences = {0, sequences.sequences()};
}

}  // namespace

void time_text_steps(const TextSteps& options) {
  at::set_num_threads(options.threads);
  const T5 model = T5::load(options.checkpoint);
  const auto module = propetl_adapter(model);
  AdamW optimizer(module->parameters(), {});
  Dropout dropout;
  dropout.hidden = dropout.attention = model.config().dropout;
  dropout.seeds = {42};
  double loss_value = 0;
  const auto take = [&](const std::vector<TextLengths>& lengths) {
    PackedSequences sources, targets;
    for (const TextLengths& pair : lengths) {
      append(sources, pair.source);
      append(targets, pair.target);
    }
    ++dropout.step;
    optimizer.zero_gradients();
    module->merge();
    const Tensor encoded = model.encode_sources(sources, *module, &dropout);
    const Tensor decoded = model.decode(targets, sources, encoded, *module, &dropout);
    const Tensor loss =
        model.smoothed_losses(decoded, at::tensor(targets.ids, at::kLong), 0.1).mean();
    loss.backward();
    module->gather();
    optimizer.clip(1.0);
    optimizer.step({3e-4, 3e-3});
    loss_value = loss.item<double>();
    return sources.tokens() + targets.tokens();
  };
  const auto batches = read_pairs(options.pairs);
  for (int i = 0; i < options.warm; ++i) take(batches.front());
  const Stopwatch watch;
  std::int64_t tokens = 0;
  std::size_t examples = 0;
  for (const auto& batch : batches) {
    tokens += take(batch);
    examples += batch.size();
  }
  const double seconds = watch.seconds();
  const double processor = watch.processor_seconds();
  std::cout
      << nlohmann::ordered_json{{"tokens_per_second", static_cast<double>(tokens) / seconds},
                                {"tokens_per_cpu_second", static_cast<double>(tokens) / processor},
                                {"examples_per_second", static_cast<double>(examples) / seconds},
                                {"threads", options.threads},
                                {"products", to_string(product_libraries())},
                                {"loss", loss_value},
                                {"rss_mib_peak", process_kib("status", "VmHWM:") / 1024}}
      << std::endl;
}

void time_generation(const TextGeneration& options) {
  at::set_num_threads(options.threads);
  const T5 model = T5::load(options.checkpoint);
  std::ifstream stream(options.inputs);
  if (!stream) throw std::runtime_error(options.inputs + ": cannot be opened");
  std::vector<std::vector<std::int64_t>> inputs;
  for (std::string line; std::getline(stream, line);) {
    inputs.push_back(nlohmann::json::parse(line).get<std::vector<std::int64_t>>());
  }
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return inputs[a].size() < inputs[b].size();
  });
  GenerationOptions wanted;
  wanted.beams = options.beams;
  wanted.max_tokens = options.new_tokens;
  const Hooks none;
  std::vector<std::vector<std::int64_t>> texts(inputs.size());
  const auto batch = static_cast<std::size_t>(options.batch);
  const Stopwatch watch;
  for (std::size_t begin = 0; begin < order.size(); begin += batch) {
    const std::size_t end = std::min(begin + batch, order.size());
    PackedSequences sources;
    for (std::size_t i = begin; i < end; ++i) {
      const auto& ids = inputs[order[i]];
      sources.ids.insert(sources.ids.end(), ids.begin(), ids.end());
      sources.offsets.push_back(static_cast<std::int64_t>(sources.ids.size()));
      sources.examples.push_back(static_cast<std::int64_t>(i));
    }
    sources.trial_sequences = {0, sources.sequences()};
    const auto generated = generate(model, sources, none, wanted);
    for (std::size_t i = begin; i < end; ++i) texts[order[i]] = generated[i - begin].front().ids;
  }
  const double seconds = watch.seconds();
  const double processor = watch.processor_seconds();
  std::ofstream out(options.ids);
  std::size_t new_tokens = 0;
  for (const auto& text : texts) {
    out << nlohmann::json(text).dump() << '\n';
    new_tokens += text.size();
  }
  if (!out.flush()) throw std::runtime_error(options.ids + ": cannot be written");
  const auto sequences = static_cast<double>(inputs.size());
  std::cout << nlohmann::ordered_json{{"sequences_per_second", sequences / seconds},
                                      {"sequences_per_cpu_second", sequences / processor},
                                      {"new_tokens", new_tokens},
                                      {"threads", options.threads},
                                      {"products", to_string(product_libraries())},
                                      {"rss_mib_peak", process_kib("status", "VmHWM:") / 1024}}
            << std::endl;
}

}  // namespace petlab::bench
