// Modules in T5, compared with the golden cases: outputs, gradients and steps.
#include <cstdio>
#include <memory>
#include <regex>

#include "tests/support/golden.h"
#include "tests/trainer/core/golden_slots.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/backbones/t5.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/modules/hyperformer.h"
#include "trainer/training/optimizer.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_relative;
using petlab::testing::read_json;
using petlab::testing::read_tensors;

namespace {

using Tensors = std::map<std::string, Tensor>;

/// Packs a golden batch, which has padded sources with a mask and labels padded with 0.
struct TextBatch {
  PackedSequences sources, targets;  // targets are the decoder's inputs
  Tensor labels;                     // (target tokens)
  Tensor mask, kept;                 // (sequences, length): true for tokens of sources, of labels

  TextBatch(const Tensor& ids, const Tensor& source_mask, const Tensor& padded_labels)
      : mask(source_mask.to(at::kBool)), kept(padded_labels != 0) {
    sources = pack_tokens(ids, mask);
    // The decoder reads the start token, then the labels shifted by one.
    const Tensor shifted = at::constant_pad_nd(padded_labels, {1, -1}, 0);
    targets = pack_tokens(shifted, kept);
    labels = padded_labels.index({kept});
  }

  static PackedSequences pack_tokens(const Tensor& ids, const Tensor& tokens) {
    PackedSequences packed;
    for (std::int64_t s = 0; s < ids.size(0); ++s) {
      for (std::int64_t i = 0; i < ids.size(1); ++i) {
        if (tokens[s][i].item<bool>()) packed.ids.push_back(ids[s][i].item<std::int64_t>());
      }
      packed.offsets.push_back(static_cast<std::int64_t>(packed.ids.size()));
      packed.examples.push_back(s);
    }
    packed.trial_sequences = {0, packed.sequences()};
    return packed;
  }
};

struct T5Model {
  const T5& backbone;
  ModuleRequest request;
  std::unique_ptr<Module> module;
  AdamW optimizer;
  std::vector<Tensor> encoder_states, decoder_states;

  T5Model(const T5& frozen, ModuleRequest wanted)
      : backbone(frozen),
        request(std::move(wanted)),
        module(make_module(request, frozen)),
        optimizer(module->parameters(), {}) {}

  Tensor logits(const TextBatch& batch) {
    encoder_states.clear();
    decoder_states.clear();
    const Tensor encoded =
        backbone.encode_sources(batch.sources, *module, nullptr, &encoder_states);
    return backbone.logits(
        backbone.decode(batch.targets, batch.sources, encoded, *module, nullptr, &decoder_states));
  }
  void backward(const Tensor& loss) {
    loss.backward();
    module->gather();
  }
};

/// Compares the hidden states of a stack. A case may have the last state before the final norm as
/// well as after it.
void compare_states(const std::string& name, const std::vector<Tensor>& found,
                    const Tensors& expected, const Tensor& mask, double tolerance) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    // The last found state is normalised. If the case has both, the normalised one comes last.
    const bool last = i + 1 == found.size();
    const std::string next = name + "." + std::to_string(i + 1);
    const std::string state =
        last && expected.contains(next) ? next : name + "." + std::to_string(i);
    check_relative(state, found[i], expected.at(state).index({mask}), tolerance);
  }
}

TextBatch batch_of_step(const Tensors& batches, std::int64_t step) {
  const std::string at = "t5." + std::to_string(step) + ".";
  return {batches.at(at + "ids"), batches.at(at + "mask"), batches.at(at + "labels")};
}

void check_t5_formula(const std::filesystem::path& folder, const nlohmann::json& golden_case,
                      const Tensors& tensors, const Tensors& batches, at::ScalarType dtype) {
  const bool exact = dtype == at::kDouble;
  const auto& tolerance = golden_case.at("tolerance").at("float32");
  const double outputs = exact ? 1e-9 : tolerance.at("outputs and losses").get<double>();
  const double gradients = exact ? 1e-9 : tolerance.at("gradients").get<double>();
  const T5 backbone = T5::load(folder.parent_path() / golden_case.at("backbone").get<std::string>(),
                               Placement::all_in(dtype));
  const auto& method = golden_case.at("method");
  ModuleRequest request = testing::module_request(method, backbone);
  request.config.cross_attention =
      request.config.kind == "lora" &&
      method.at("layers").get<std::int64_t>() > backbone.shape().layers();
  T5Model model(backbone, request);
  const std::int64_t task = method.value("task_of_the_batch", 0);
  const auto parameters = [&](bool of_gradients, const auto& visit) {
    testing::each_slot(model.optimizer.parameters(), request.config, of_gradients, visit);
  };
  parameters(false, [&](const std::string& name, Tensor slot) {
    INFO(name);
    slot.copy_(tensors.at(name));
  });
  const auto check_masks = [&](const std::string& before) {
    testing::each_mask(*model.module, [&](const std::string& name, const Tensor& mask) {
      INFO(before << name);
      CHECK(at::equal(mask, tensors.at(before + name).to(dtype)));
    });
  };
  model.module->merge(task);
  check_masks("");
  const TextBatch first = batch_of_step(batches, 0);
  const Tensor logits = model.logits(first);
  compare_states("out.encoder_hidden", model.encoder_states, tensors, first.mask, outputs);
  compare_states("out.decoder_hidden", model.decoder_states, tensors, first.kept, outputs);
  check_relative("out.logits", logits, tensors.at("out.logits").index({first.kept}), outputs);
  const Tensor loss = smoothed_losses(logits, first.labels, 0.1).mean();
  check_relative("out.loss", loss, tensors.at("out.loss"), outputs);
  model.backward(loss);
  parameters(true, [&](const std::string& name, const Tensor& slot) {
    if (tensors.contains("grad." + name)) {
      check_relative("grad." + name, slot, tensors.at("grad." + name), gradients);
    } else {
      INFO(name);
      CHECK(name.starts_with("score.task."));
      CHECK(slot.abs().max().item<double>() == 0);
    }
  });
  if (!tensors.contains("out.trajectory")) return;
  const Tensor& trajectory = tensors.at("out.trajectory");
  for (std::int64_t step = 0; step < trajectory.size(0); ++step) {
    if (step > 0) {
      model.optimizer.zero_gradients();
      model.module->merge(task);
      const TextBatch batch = batch_of_step(batches, step);
      const Tensor next = smoothed_losses(model.logits(batch), batch.labels, 0.1).mean();
      check_relative("loss of step " + std::to_string(step), next, trajectory[step],
                     exact ? 1e-9 : 1e-3);
      model.backward(next);
    }
    model.optimizer.clip(1.0);
    model.optimizer.step({1e-2, 3e-2});
    if (step > 0 || !exact) continue;
    parameters(false, [&](const std::string& name, const Tensor& slot) {
      check_relative("after." + name, slot, tensors.at("after." + name), 1e-9);
    });
    model.module->merge(task);
    check_masks("after.");
  }
}

/// Translates a library's weight name to the name used by each_slot. `layers` counts encoder and
/// decoder layers.
std::string t5_slot_name(const std::string& library_name, std::int64_t encoder_layers,
                         std::int64_t layers) {
  static const std::regex adapter(
      R"((encoder|decoder)\.block\.(\d+)\.layer\.\d\.adapters\.petl\.adapter_(down|up)(\.0)?\.(weight|bias))");
  static const std::regex lora(
      R"(base_model\.model\.(encoder|decoder)\.block\.(\d+)\.layer\.\d\.(SelfAttention|EncDecAttention)\.(q|v)\.(lora_[AB])\.default\.weight)");
  std::smatch found;
  const auto layer = [&](bool cross) {
    const std::int64_t number = std::stol(found[2].str());
    return std::to_string(number + (cross ? layers : found[1] == "decoder" ? encoder_layers : 0));
  };
  if (std::regex_match(library_name, found, adapter)) {
    return "module.layer." + layer(false) + "." + found[3].str() + "." + found[5].str();
  }
  if (std::regex_match(library_name, found, lora)) {
    return "module.layer." + layer(found[3] == "EncDecAttention") + "." +
           (found[4] == "q" ? "query." : "value.") + found[5].str();
  }
  return "";
}

void check_t5_library(const std::filesystem::path& folder, const nlohmann::json& golden_case,
                      const Tensors& tensors) {
  const auto& tolerance = golden_case.at("tolerance");
  const T5 backbone =
      T5::load(folder.parent_path() / golden_case.at("backbone").get<std::string>());
  ModuleRequest request;
  request.seed = 0;
  if (golden_case.contains("alpha")) {
    request.config.kind = "lora";
    request.config.rank = golden_case.at("r");
    request.config.alpha = golden_case.at("alpha");
    request.config.cross_attention = true;
  } else {
    request.config.kind = "adapter";
    const Tensor& down =
        tensors.at("module.encoder.block.0.layer.1.adapters.petl.adapter_down.0.bias");
    request.config.bottleneck = down.size(0);
  }
  T5Model model(backbone, request);
  std::map<std::string, std::string> library_names;  // by slot
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with("module.")) continue;
    const std::string library_name = name.substr(std::string("module.").size());
    const std::string slot =
        t5_slot_name(library_name, backbone.config().num_layers, backbone.shape().layers());
    INFO(name);
    REQUIRE(!slot.empty());
    library_names.emplace(slot, library_name);
  }
  testing::each_slot(model.optimizer.parameters(), request.config, false,
                     [&](const std::string& name, Tensor slot) {
                       INFO(name);
                       slot.copy_(tensors.at("module." + library_names.at(name)));
                     });
  model.module->merge();
  const TextBatch batch(tensors.at("input.ids"), tensors.at("input.mask"),
                        tensors.at("input.labels"));
  const Tensor logits = model.logits(batch);
  compare_states("out.encoder_hidden", model.encoder_states, tensors, batch.mask,
                 tolerance.at("hidden"));
  compare_states("out.decoder_hidden", model.decoder_states, tensors, batch.kept,
                 tolerance.at("hidden"));
  check_relative("out.logits", logits, tensors.at("out.logits").index({batch.kept}),
                 tolerance.at("logits"));
  const Tensor loss = smoothed_losses(logits, batch.labels, 0).mean();
  check_relative("out.loss", loss, tensors.at("out.loss"), tolerance.at("loss"));
  model.backward(loss);
  int compared = 0;
  testing::each_slot(model.optimizer.parameters(), request.config, true,
                     [&](const std::string& name, const Tensor& slot) {
                       check_relative("grad." + name, slot,
                                      tensors.at("grad." + library_names.at(name)),
                                      tolerance.at("grad"));
                       ++compared;
                     });
  CHECK(compared == static_cast<int>(library_names.size()));
}

/// Checks generated adapters, and the model that uses them.
void check_hyperformer(const std::filesystem::path& folder, const nlohmann::json& golden_case,
                       const Tensors& tensors, const Tensors& batches, at::ScalarType dtype) {
  const auto& tolerance = golden_case.at("tolerance");
  const auto tolerance_of = [&](const char* what) {
    return dtype == at::kDouble ? tolerance.at("float64").get<double>()
                                : tolerance.at("float32").at(what).get<double>();
  };
  const double outputs = tolerance_of("outputs and loss");
  const T5 backbone = T5::load(folder.parent_path() / golden_case.at("backbone").get<std::string>(),
                               Placement::all_in(dtype));
  const auto& method = golden_case.at("method");
  ModuleRequest request;
  request.config.kind = "hyperformer++";
  request.config.bottleneck = method.at("bn");
  request.config.hyper_embedding = method.at("task_embedding");
  request.config.hyper_hidden = method.at("mlp_hidden");
  request.config.hyper_projected = method.at("projected");
  request.tasks = method.at("tasks");
  request.seed = 0;
  request.placement = backbone.placement();
  T5Model model(backbone, request);
  for (const Parameter& parameter : model.optimizer.parameters()) {
    INFO(parameter.name);
    Tensor(parameter.value).copy_(tensors.at("module." + parameter.name));
  }
  std::size_t module_tensors = 0;
  for (const auto& [name, tensor] : tensors) module_tensors += name.starts_with("module.") ? 1 : 0;
  CHECK(module_tensors == model.optimizer.parameters().size());
  model.module->merge(method.at("task_of_the_batch").get<std::int64_t>());

  const auto& hyper = dynamic_cast<const Hyperformer&>(*model.module);
  int generated = 0;
  for (std::int64_t l = 0; l < backbone.shape().layers(); ++l) {
    for (const auto& [position, place] :
         {std::pair(Hyperformer::Position::attention, "attention"),
          std::pair(Hyperformer::Position::feed_forward, "feed_forward")}) {
      for (std::size_t i = 0; i < hyper.tensor_names().size(); ++i) {
        const std::string name = "out.generated.layer." + std::to_string(l) + "." + place + "." +
                                 hyper.tensor_names()[i];
        if (!tensors.contains(name)) continue;
        check_relative(name, hyper.adapter(l, position)[i], tensors.at(name), outputs);
        ++generated;
      }
    }
  }
  CHECK(generated > 0);
  const TextBatch batch = batch_of_step(batches, 0);
  const Tensor logits = model.logits(batch);
  compare_states("out.encoder_hidden", model.encoder_states, tensors, batch.mask, outputs);
  compare_states("out.decoder_hidden", model.decoder_states, tensors, batch.kept, outputs);
  check_relative("out.logits", logits, tensors.at("out.logits").index({batch.kept}), outputs);
  const Tensor loss = smoothed_losses(logits, batch.labels, 0.1).mean();
  check_relative("out.loss", loss, tensors.at("out.loss"), outputs);
  model.backward(loss);
  std::size_t gradients = 0;
  for (const Parameter& parameter : model.optimizer.parameters()) {
    const auto wanted = tensors.find("grad." + parameter.name);
    if (wanted == tensors.end()) continue;  // the case omits it
    check_relative(wanted->first, parameter.gradient, wanted->second, tolerance_of("gradients"));
    ++gradients;
  }
  CHECK(gradients > module_tensors / 2);
}

}  // namespace

TEST_CASE("every golden T5 module matches its outputs, gradients and steps", "[trainer][golden]") {
  const auto petl = testing::golden("petl");
  if (!petl) return;
  const Tensors batches = read_tensors(*petl / "batches.safetensors");
  int formula = 0;
  int library = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*petl)) {
    if (!std::filesystem::exists(entry.path() / "case.json")) continue;
    const nlohmann::json golden_case = read_json(entry.path() / "case.json");
    if (golden_case.value("backbone", "") != "backbone_t5") continue;
    const Tensors tensors = read_tensors(entry.path() / "tensors.safetensors");
    INFO(entry.path().filename().string());
    if (golden_case.contains("method") && golden_case.at("method").contains("mlp_hidden")) {
      check_hyperformer(entry.path(), golden_case, tensors, batches, at::kDouble);
      check_hyperformer(entry.path(), golden_case, tensors, batches, at::kFloat);
      ++formula;
    } else if (golden_case.contains("method")) {
      check_t5_formula(entry.path(), golden_case, tensors, batches, at::kDouble);
      check_t5_formula(entry.path(), golden_case, tensors, batches, at::kFloat);
      ++formula;
    } else {
      check_t5_library(entry.path(), golden_case, tensors);
      ++library;
    }
  }
  std::printf("golden T5 modules: %d by formula (float64 and float32), %d of libraries\n", formula,
              library);
  testing::golden_ran("petl/t5", formula + library);
}
