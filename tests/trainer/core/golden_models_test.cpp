#include "tests/support/golden.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/backbones/padded.h"
#include "trainer/modules/head.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_close;
using petlab::testing::read_json;
using petlab::testing::read_tensors;

namespace {

using Tensors = std::map<std::string, Tensor>;

struct ModelCase {
  std::filesystem::path folder;
  nlohmann::json described;  // the tensors of expected.json
  Tensors expected;
};

void compare(const ModelCase& golden, const std::string& name, const Tensor& found) {
  const auto& description = golden.described.at(name);
  check_close(golden.folder.filename().string() + " " + name, found, golden.expected.at(name),
              description.at("atol"), description.at("rtol"));
}

Tensor types_of(const ModelCase& golden) {
  const auto found = golden.expected.find("token_type_ids");
  return found == golden.expected.end() ? Tensor() : found->second;
}

/// Loads a copy whose weights require gradients.
std::unique_ptr<const Backbone> trainable(const std::filesystem::path& folder) {
  const auto frozen = load_backbone(folder);
  Backbone::Weights copies;
  for (const auto& [name, tensor] : frozen->weights()) {
    copies.emplace(name, tensor.detach().clone().requires_grad_(true));
  }
  return frozen->with_weights(std::move(copies));
}

/// The token rows of a padded tensor (sequences, length, d).
Tensor tokens_of(const Tensor& padded, const Tensor& mask) {
  return padded.index({mask.to(at::kBool)});
}

void check_hidden_states(const ModelCase& golden) {
  const auto loaded = load_backbone(golden.folder);
  const Backbone& encoder = *loaded;
  const Tensor mask = golden.expected.at("attention_mask");
  const EncoderInput input =
      pack_padded(golden.expected.at("input_ids"), mask, types_of(golden), encoder);
  std::vector<Tensor> hidden;
  const at::NoGradGuard no_grad;
  encoder.encode(input, Hooks(), LastLayer::all_tokens, nullptr, &hidden);
  REQUIRE(static_cast<std::int64_t>(hidden.size()) == encoder.shape().encoder_layers + 1);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::string name = "hidden_states." + std::to_string(i);
    const auto& description = golden.described.at(name);
    check_close(name, hidden[i], tokens_of(golden.expected.at(name), mask), description.at("atol"),
                description.at("rtol"));
  }
}

void check_head(const ModelCase& golden, const std::string& kind, const std::string& head_file) {
  const auto loaded = trainable(golden.folder);
  const Backbone& encoder = *loaded;
  const EncoderInput input =
      pack_padded(golden.expected.at("input_ids"), golden.expected.at("attention_mask"),
                  types_of(golden), encoder);
  const Tensors weights = read_tensors(golden.folder / head_file);
  const auto weight = [&](const std::string& name) {
    return weights.contains(name) ? weights.at(name) : weights.at("classifier." + name);
  };
  Head head(encoder.shape().d_model, weight("out_proj.bias").size(0), 0, 0, Placement());
  for (Parameter& parameter : head.parameters()) {
    const std::string name = parameter.name.substr(std::string("head.0.").size());
    parameter.value.copy_(weight(name).unsqueeze(0));
  }
  // The shortcut for first tokens in the last layer must give the same result.
  const Tensor first = encoder.encode(input, Hooks(), LastLayer::first_tokens);
  const Tensor logits = head.forward(first, first_token_rows(input.sequences), nullptr);
  const Tensor loss =
      summed_loss(kind == "reg" ? sweeps::TaskKind::regression : sweeps::TaskKind::classification,
                  logits, golden.expected.at(kind + ".labels")) /
      input.sequences.sequences();
  loss.backward();
  compare(golden, kind + ".logits", logits);
  compare(golden, kind + ".loss", loss);
  for (const Parameter& parameter : head.parameters()) {
    compare(golden, kind + ".grad.head." + parameter.name.substr(std::string("head.0.").size()),
            parameter.gradient);
  }
  const std::string prefix = kind + ".grad.";
  int compared = 0;
  for (const auto& [name, tensor] : golden.expected) {
    if (!name.starts_with(prefix) || name.starts_with(prefix + "head.")) continue;
    compare(golden, name, encoder.weights().find(name.substr(prefix.size()))->second.grad());
    ++compared;
  }
  CHECK(compared > 0);
}

void check_interior_padding(const ModelCase& golden) {
  if (!golden.expected.contains("interior_pad.input_ids")) return;
  const auto loaded = trainable(golden.folder);
  const Backbone& encoder = *loaded;
  const Tensor ids = golden.expected.at("interior_pad.input_ids");
  const EncoderInput input = pack_padded(ids, at::ones_like(ids), {}, encoder);
  if (golden.expected.contains("interior_pad.position_ids")) {
    CHECK(at::equal(at::tensor(input.position_ids, at::kLong),
                    golden.expected.at("interior_pad.position_ids").flatten()));
  }
  const Tensor last = encoder.encode(input, Hooks(), LastLayer::all_tokens);
  compare(golden, "interior_pad.last_hidden_state", last);
  last[0][0].backward();
  const std::string prefix = "interior_pad.grad.", ending = ".first_rows";
  int tables = 0;
  for (const auto& [name, rows] : golden.expected) {
    if (!name.starts_with(prefix)) continue;
    REQUIRE(name.ends_with(ending));
    const std::string weight =
        name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
    compare(golden, name, encoder.weights().at(weight).grad().narrow(0, 0, rows.size(0)));
    ++tables;
  }
  CHECK(tables > 0);
}

void check_half_precision(const ModelCase& golden) {
  for (const char* type : {"fp16", "bf16"}) {
    const auto file = golden.folder / (std::string("model.") + type + ".safetensors");
    const std::string name = std::string(type) + ".last_hidden_state";
    if (!std::filesystem::exists(file)) continue;
    const EncoderConfig config = read_encoder_config(golden.folder);
    Encoder::Weights weights;
    const auto stored = read_tensors(file);
    for (const WantedTensor& wanted : encoder_tensors(config)) {
      weights.emplace(wanted.name, stored.at(wanted.name).to(at::kFloat));
    }
    const Encoder encoder(config, std::move(weights));
    // The file has the first 50 columns of rows 1 to 3.
    const auto part = [](const Tensor& t) {
      return t.defined() ? t.narrow(0, 1, 3).narrow(1, 0, 50) : t;
    };
    const Tensor mask = part(golden.expected.at("attention_mask"));
    const at::NoGradGuard no_grad;
    const Tensor last = encoder.encode(
        pack_padded(part(golden.expected.at("input_ids")), mask, part(types_of(golden)), encoder),
        Hooks(), LastLayer::all_tokens);
    const auto& description = golden.described.at(name);
    check_close(name, last, tokens_of(golden.expected.at(name), mask), description.at("atol"),
                description.at("rtol"));
  }
}

}  // namespace

TEST_CASE("every encoder of the golden models matches Hugging Face", "[trainer][golden]") {
  const auto models = testing::golden("models");
  if (!models) return;
  int encoders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const std::string type = read_json(entry.path() / "config.json").value("model_type", "");
    if (type == "t5" || type.empty()) continue;
    INFO(entry.path().filename().string());
    // A folder without expected values has the weights of the folder whose name is its prefix.
    std::filesystem::path values = entry.path();
    if (!std::filesystem::exists(values / "expected.json")) {
      const std::string name = entry.path().filename().string();
      values = *models / name.substr(0, name.rfind('-'));
    }
    ModelCase golden{entry.path(), read_json(values / "expected.json").at("tensors"),
                     read_tensors(values / "expected.safetensors")};
    check_hidden_states(golden);
    check_interior_padding(golden);
    check_half_precision(golden);
    if (std::filesystem::exists(entry.path() / "head.safetensors")) {
      check_head(golden, "cls", "head.safetensors");
      check_head(golden, "reg", "head_regression.safetensors");
    }
    ++encoders;
  }
  testing::golden_ran("models/encoders", encoders);
}
