#include <algorithm>
#include <cstdio>
#include <regex>

#include "tests/support/golden.h"
#include "tests/trainer/core/golden_slots.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/backbones/padded.h"
#include "trainer/modules/head.h"
#include "trainer/training/optimizer.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_close;
using petlab::testing::check_relative;
using petlab::testing::read_json;
using petlab::testing::read_tensors;

namespace {

using Tensors = std::map<std::string, Tensor>;

struct PetlCase {
  std::filesystem::path folder;
  nlohmann::json json;
  Tensors tensors;
  Tensors batches;

  std::int64_t classes() const { return tensors.at("out.logits").size(1); }
};

/// A module with its head in a tiny backbone; slots have the golden files' names.
struct Model {
  const Backbone& encoder;
  ModuleRequest request;
  std::unique_ptr<Module> module;
  Head head;
  std::unique_ptr<AdamW> optimizer;
  std::int64_t task = 0;

  Model(const Backbone& backbone, ModuleRequest wanted, std::int64_t classes)
      : encoder(backbone),
        request(std::move(wanted)),
        module(make_module(request, backbone)),
        head(backbone.shape().d_model, classes, request.seed, 0, backbone.placement()) {
    std::vector<Parameter> all = module->parameters();
    for (Parameter& parameter : head.parameters()) all.push_back(parameter);
    optimizer = std::make_unique<AdamW>(std::move(all), AdamWOptions());
  }

  /// The backbone with the module's weights, if it trains them.
  const Backbone& used() const { return module->backbone(encoder); }

  EncoderInput input(const Tensors& batches, std::int64_t step) const {
    const std::string prefix = "roberta." + std::to_string(step) + ".";
    return pack_padded(batches.at(prefix + "ids"), batches.at(prefix + "mask"), {}, encoder);
  }

  Tensor logits(const EncoderInput& in) {
    return head.forward(used().encode(in, *module, LastLayer::first_tokens),
                        first_token_rows(in.sequences), nullptr);
  }

  Tensor loss(const Tensors& batches, std::int64_t step) {
    const EncoderInput in = input(batches, step);
    const Tensor labels = batches.at("roberta." + std::to_string(step) + ".labels");
    return summed_loss(sweeps::TaskKind::classification, logits(in), labels) /
           in.sequences.sequences();
  }

  void backward(const Tensor& of) {
    of.backward();
    module->gather();
  }

  bool has_random_masks() const { return request.config.mask == metrics::MaskKind::random; }

  template <typename Visit>
  void each_slot(bool gradients, Visit visit) {
    testing::each_slot(optimizer->parameters(), request.config, gradients, visit);
  }
  template <typename Visit>
  void each_mask(Visit visit) {
    testing::each_mask(*module, visit);
  }
};

ModuleRequest request_of(const PetlCase& golden, const Backbone& encoder) {
  return testing::module_request(golden.json.at("method"), encoder);
}

/// What a model in float64 computes in a step, from the weights before it.
struct ExactStep {
  Tensors weights;
  Tensors gradients;
  Tensor loss;
};

std::unique_ptr<const Backbone> backbone_of(const PetlCase& golden, at::ScalarType dtype) {
  return load_backbone(golden.folder.parent_path() / golden.json.at("backbone").get<std::string>(),
                       Placement::all_in(dtype));
}

/// Copies the case's weights, and its masks if they are random.
void fill(Model& model, const PetlCase& golden) {
  model.task = golden.json.at("method").value("task_of_the_batch", 0);
  model.each_slot(false, [&](const std::string& name, Tensor slot) {
    INFO(name);
    slot.copy_(golden.tensors.at(name));
  });
  if (!model.has_random_masks()) return;
  model.each_mask(
      [&](const std::string& name, Tensor slot) { slot.copy_(golden.tensors.at(name)); });
}

double largest_of(const Tensor& tensor) { return tensor.abs().max().item<double>(); }

/// Gradients whose largest number is less than this share of the model's largest are compared as if
/// they had the share: rounding in the large ones reaches sums that nearly cancel.
double least_share(const PetlCase& golden) {
  return golden.json.at("tolerance").at("float32").value("least_share_of_gradients", 0.0);
}

void check_gradients(Model& model, const Tensors& wanted, double tolerance, double least) {
  double largest = 0;
  for (const auto& [name, gradient] : wanted) largest = std::max(largest, largest_of(gradient));
  model.each_slot(true, [&](const std::string& name, const Tensor& slot) {
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      // The case omits scores of tasks that are not in the batch.
      INFO(name);
      CHECK(name.starts_with("score.task."));
      CHECK(largest_of(slot) == 0);
    } else {
      const double size = std::max({1e-3, largest_of(found->second), least * largest});
      check_close("grad." + name, slot, found->second, tolerance * size, 0);
    }
  });
}

/// Returns the steps after the first.
std::vector<ExactStep> check_formula_case(const PetlCase& golden, at::ScalarType dtype) {
  const bool exact = dtype == at::kDouble;
  const auto& tolerance = golden.json.at("tolerance");
  const double outputs =
      exact ? 1e-9 : tolerance.at("float32").at("outputs and losses").get<double>();
  const double gradients = exact ? 1e-9 : tolerance.at("float32").at("gradients").get<double>();
  const auto loaded = backbone_of(golden, dtype);
  const Backbone& encoder = *loaded;
  Model model(encoder, request_of(golden, encoder), golden.classes());
  fill(model, golden);
  model.module->merge(model.task);
  model.each_mask([&](const std::string& name, const Tensor& mask) {
    INFO(name);
    CHECK(at::equal(mask, golden.tensors.at(name).to(dtype)));
  });
  const EncoderInput input = model.input(golden.batches, 0);
  std::vector<Tensor> hidden;
  model.used().encode(input, *model.module, LastLayer::all_tokens, nullptr, &hidden);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::string name = "out.hidden." + std::to_string(i);
    const Tensor wanted =
        golden.tensors.at(name).index({golden.batches.at("roberta.0.mask").to(at::kBool)});
    check_relative(name, hidden[i], wanted, outputs);
  }
  check_relative("out.logits", model.logits(input), golden.tensors.at("out.logits"), outputs);
  const Tensor loss = model.loss(golden.batches, 0);
  check_relative("out.loss", loss, golden.tensors.at("out.loss"), outputs);
  model.backward(loss);
  Tensors wanted;
  for (const auto& [name, tensor] : golden.tensors) {
    if (name.starts_with("grad.")) wanted.emplace(name.substr(5), tensor);
  }
  check_gradients(model, wanted, gradients, exact ? 0 : least_share(golden));
  std::vector<ExactStep> steps;
  if (!golden.json.contains("optimizer")) return steps;

  const Tensor& trajectory = golden.tensors.at("out.trajectory");
  for (std::int64_t step = 0; step < trajectory.size(0); ++step) {
    if (step > 0) {
      model.optimizer->zero_gradients();
      model.module->merge();
      const Tensor next = model.loss(golden.batches, step);
      // In float32 the losses diverge: a mask bit may flip, and AdamW turns a gradient that is only
      // rounding into a whole step. check_single_steps compares without what came before.
      check_relative("loss of step " + std::to_string(step), next, trajectory[step],
                     exact ? 1e-9 : 1e-3);
      model.backward(next);
      ExactStep& of_step = steps.emplace_back();
      of_step.loss = next.detach();
      const auto record = [](Tensors& to) {
        return [&to](const std::string& name, const Tensor& slot) { to[name] = slot.clone(); };
      };
      model.each_slot(false, record(of_step.weights));
      model.each_slot(true, record(of_step.gradients));
    }
    const double norm = model.optimizer->clip(1.0).item<double>();
    CHECK(norm == Approx(golden.json.at("expected")
                             .at("grad_norm_before_clip")
                             .at(static_cast<std::size_t>(step))
                             .get<double>())
                      .epsilon(exact ? 1e-9 : 1e-2));
    model.optimizer->step({golden.json.value("learning_rate", 1e-2), 3e-2});
    if (step > 0 || !exact) continue;
    model.each_slot(false, [&](const std::string& name, const Tensor& slot) {
      check_relative("after." + name, slot, golden.tensors.at("after." + name), 1e-9);
    });
    model.module->merge();
    if (model.has_random_masks()) continue;
    model.each_mask([&](const std::string& name, const Tensor& mask) {
      INFO("after." << name);
      CHECK(at::equal(mask, golden.tensors.at("after." + name).to(dtype)));
    });
  }
  return steps;
}

/// Compares losses and gradients in float32 with those of each exact step, from its weights.
void check_single_steps(const PetlCase& golden, const std::vector<ExactStep>& steps) {
  const auto& tolerance = golden.json.at("tolerance").at("float32");
  const auto loaded = backbone_of(golden, at::kFloat);
  Model model(*loaded, request_of(golden, *loaded), golden.classes());
  fill(model, golden);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("step " << i + 1 << " from exact weights");
    model.optimizer->zero_gradients();
    model.each_slot(false, [&](const std::string& name, Tensor slot) {
      slot.copy_(steps[i].weights.at(name));
    });
    model.module->merge(model.task);
    const Tensor loss = model.loss(golden.batches, static_cast<std::int64_t>(i) + 1);
    check_relative("loss", loss, steps[i].loss, tolerance.at("outputs and losses"));
    model.backward(loss);
    check_gradients(model, steps[i].gradients, tolerance.at("gradients"), least_share(golden));
  }
}

/// Translates a library's weight name to the name used by each_slot.
std::string slot_name(const std::string& library_name) {
  static const std::regex adapter(
      R"(module\.roberta\.encoder\.layer\.(\d+)\.output\.adapters\.petl\.adapter_(down|up)(\.0)?\.(weight|bias))");
  static const std::regex lora(
      R"(module\.base_model\.model\.roberta\.encoder\.layer\.(\d+)\.attention\.self\.(query|value)\.(lora_[AB])\.default\.weight)");
  static const std::regex head(
      R"(module\.base_model\.model\.classifier\.modules_to_save\.default\.(.*))");
  static const std::regex prefix(R"(module\..*\.self_prefix\.(.*))");
  std::smatch found;
  if (std::regex_match(library_name, found, adapter)) {
    return "module.layer." + found[1].str() + "." + found[2].str() + "." + found[4].str();
  }
  if (std::regex_match(library_name, found, lora)) {
    return "module.layer." + found[1].str() + "." + found[2].str() + "." + found[3].str();
  }
  if (std::regex_match(library_name, found, head)) return "head.classifier." + found[1].str();
  if (std::regex_match(library_name, found, prefix)) {
    const std::string inner = found[1];
    if (inner == "wte.weight") return "module.embedding";
    return "module.mlp" + inner.substr(std::string("control_trans").size());
  }
  return "";
}

/// ModernBERT's LoRA in PEFT: one on Wqkv, whose first half of the rank is the query's.
const std::regex kJoinedLora(
    R"(module\.base_model\.model\.layers\.(\d+)\.attn\.Wqkv\.lora_([AB])\.default\.weight)");

/// The rows of A, or the block of B, for a projection.
Tensor part_of_joined(const Tensor& joined, const std::string& projection,
                      const std::string& side) {
  const std::int64_t half = projection == "query" ? 0 : 1;
  const std::int64_t rank = joined.size(side == "A" ? 0 : 1) / 2;
  if (side == "A") return joined.narrow(0, half * rank, rank);
  const std::int64_t width = joined.size(0) / 3;
  return joined.narrow(0, 2 * half * width, width).narrow(1, half * rank, rank);
}

void check_library_case(const PetlCase& golden) {
  const auto& tolerance = golden.json.at("tolerance");
  const auto loaded =
      load_backbone(golden.folder.parent_path() / golden.json.at("backbone").get<std::string>());
  const Backbone& encoder = *loaded;
  Tensors wanted, gradients;  // by name, as in each_slot
  for (const auto& [name, tensor] : golden.tensors) {
    if (!name.starts_with("module.")) continue;
    const Tensor& gradient =
        golden.tensors.at("grad." + name.substr(std::string("module.").size()));
    INFO(name);
    std::smatch joined;
    if (std::regex_match(name, joined, kJoinedLora)) {
      const std::string layer = "module.layer." + joined[1].str() + ".";
      for (const char* projection : {"query", "value"}) {
        const std::string slot = layer + projection + ".lora_" + joined[2].str();
        wanted.emplace(slot, part_of_joined(tensor, projection, joined[2]));
        gradients.emplace(slot, part_of_joined(gradient, projection, joined[2]));
      }
      continue;
    }
    const std::string slot = slot_name(name);
    REQUIRE(!slot.empty());
    wanted.emplace(slot, tensor);
    gradients.emplace(slot, gradient);
  }
  ModuleRequest request;
  request.seed = 0;
  if (wanted.contains("module.embedding")) {
    request.config.kind = "prefix";
    request.config.prefix_length = wanted.at("module.embedding").size(0);
    request.config.prefix_hidden = wanted.at("module.mlp.0.bias").size(0);
  } else if (wanted.contains("module.layer.0.down.weight")) {
    request.config.kind = "adapter";
    request.config.bottleneck = wanted.at("module.layer.0.down.bias").size(0);
  } else {
    request.config.kind = "lora";
    request.config.rank = golden.json.at("r");
    request.config.alpha = golden.json.at("alpha");
  }
  Model model(encoder, request, golden.classes());
  const Tensors file =
      read_tensors(golden.folder.parent_path() / golden.json.at("backbone").get<std::string>() /
                   "model.safetensors");
  model.each_slot(false, [&](const std::string& name, Tensor slot) {
    INFO(name);
    slot.copy_(wanted.contains(name) ? wanted.at(name) : file.at(name.substr(5)));
  });
  model.module->merge();
  const EncoderInput input =
      pack_padded(golden.tensors.at("input.ids"), golden.tensors.at("input.mask"), {}, encoder);
  std::vector<Tensor> hidden;
  encoder.encode(input, *model.module, LastLayer::all_tokens, nullptr, &hidden);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::string name = "out.hidden." + std::to_string(i);
    const Tensor rows =
        golden.tensors.at(name).index({golden.tensors.at("input.mask").to(at::kBool)});
    check_relative(name, hidden[i], rows, tolerance.at("hidden"));
  }
  if (request.config.kind == "prefix") {
    for (std::int64_t l = 0; l < encoder.shape().encoder_layers; ++l) {
      const auto prefix = model.module->prefix({Site::keys_and_values, l, {}});
      check_relative("P", at::cat({prefix->keys[0], prefix->values[0]}, 1),
                     golden.tensors.at("out.P." + std::to_string(l)), tolerance.at("hidden"));
    }
  }
  const Tensor logits = model.logits(input);
  check_relative("out.logits", logits, golden.tensors.at("out.logits"), tolerance.at("logits"));
  const Tensor loss =
      summed_loss(sweeps::TaskKind::classification, logits, golden.tensors.at("input.labels")) /
      input.sequences.sequences();
  check_relative("out.loss", loss, golden.tensors.at("out.loss"), tolerance.at("loss"));
  model.backward(loss);
  int compared = 0;
  model.each_slot(true, [&](const std::string& name, const Tensor& slot) {
    if (!gradients.contains(name)) return;
    check_relative("grad." + name, slot, gradients.at(name), tolerance.at("grad"));
    ++compared;
  });
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("every golden module of an encoder matches its outputs, gradients and steps",
          "[trainer][golden]") {
  const auto petl = testing::golden("petl");
  if (!petl) return;
  const Tensors batches = read_tensors(*petl / "batches.safetensors");
  int formula = 0;
  int library = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*petl)) {
    if (!std::filesystem::exists(entry.path() / "case.json")) continue;
    PetlCase golden{entry.path(), read_json(entry.path() / "case.json"), {}, batches};
    const std::string backbone = golden.json.value("backbone", "");
    if (backbone.empty() || sweeps::read_backbone_shape(*petl / backbone).decoder_layers > 0) {
      continue;
    }
    golden.tensors = read_tensors(entry.path() / "tensors.safetensors");
    INFO(entry.path().filename().string());
    if (golden.json.contains("method")) {
      const std::vector<ExactStep> steps = check_formula_case(golden, at::kDouble);
      check_formula_case(golden, at::kFloat);
      check_single_steps(golden, steps);
      ++formula;
    } else {
      check_library_case(golden);
      ++library;
    }
  }
  std::printf("golden modules: %d by formula (float64 and float32), %d of libraries\n", formula,
              library);
  testing::golden_ran("petl/encoders", formula + library);
}
