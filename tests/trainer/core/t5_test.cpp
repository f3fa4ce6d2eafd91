// The T5 backbone, compared with Hugging Face's.
#include "trainer/backbones/t5.h"

#include <fstream>

#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/compute/random_stream.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/safetensors.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::check_close;
using petlab::testing::check_relative;
using petlab::testing::read_json;
using petlab::testing::read_tensors;

namespace {

using Tensors = std::map<std::string, Tensor>;

struct T5Case {
  nlohmann::json described;
  Tensors expected;

  void compare(const std::string& name, const Tensor& found, const Tensor& wanted) const {
    const auto& description = described.at(name);
    check_close(name, found, wanted, description.at("atol"), description.at("rtol"));
  }
  void compare(const std::string& name, const Tensor& found) const {
    compare(name, found, expected.at(name));
  }
  /// Compares a stack's states at the tokens where `mask` is true.
  void compare_states(const std::string& name, const std::vector<Tensor>& found,
                      const Tensor& mask) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string state = name + "." + std::to_string(i);
      compare(state, found[i], expected.at(state).index({mask}));
    }
  }
};

/// Packs the ids for which `mask` (sequences, length) is true.
PackedSequences packed_rows_of(const Tensor& ids, const Tensor& mask) {
  PackedSequences packed;
  for (std::int64_t s = 0; s < ids.size(0); ++s) {
    for (std::int64_t i = 0; i < ids.size(1); ++i) {
      if (mask[s][i].item<bool>()) packed.ids.push_back(ids[s][i].item<std::int64_t>());
    }
    packed.offsets.push_back(static_cast<std::int64_t>(packed.ids.size()));
    packed.examples.push_back(s);
  }
  packed.trial_sequences = {0, packed.sequences()};
  return packed;
}

T5 trainable_t5(const T5& frozen) {
  T5::Weights copies;
  for (const auto& [name, tensor] : frozen.weights()) {
    copies.emplace(name, tensor.detach().clone().requires_grad_(true));
  }
  return T5(frozen.config(), std::move(copies), frozen.placement());
}

void check_t5(const std::filesystem::path& folder) {
  const T5Case golden{read_json(folder / "expected.json").at("tensors"),
                      read_tensors(folder / "expected.safetensors")};
  const T5 model = trainable_t5(T5::load(folder));
  const Tensor mask = golden.expected.at("attention_mask").to(at::kBool);
  const Tensor labels = golden.expected.at("labels");
  const Tensor kept = labels != -100;
  const PackedSequences sources = packed_rows_of(golden.expected.at("input_ids"), mask);
  const PackedSequences targets = packed_rows_of(golden.expected.at("decoder_input_ids"), kept);

  std::vector<Tensor> encoder_states, decoder_states;
  const Tensor encoded = model.encode_sources(sources, Hooks(), nullptr, &encoder_states);
  const Tensor decoded = model.decode(targets, sources, encoded, Hooks(), nullptr, &decoder_states);
  const Tensor logits = model.logits(decoded);
  golden.compare_states("encoder_hidden_states", encoder_states, mask);
  golden.compare_states("decoder_hidden_states", decoder_states, kept);
  REQUIRE(static_cast<std::int64_t>(encoder_states.size()) == model.config().num_layers + 1);
  golden.compare("logits", logits, golden.expected.at("logits").index({kept}));

  const Tensor wanted = labels.index({kept});
  int gradients = 0;
  for (const auto& [name, prefix, smoothing] :
       {std::tuple{"loss", "grad.", 0.0}, std::tuple{"loss_smoothed", "grad_smoothed.", 0.1}}) {
    for (const auto& [weight, tensor] : model.weights()) tensor.mutable_grad() = Tensor();
    const Tensor loss = smoothed_losses(logits, wanted, smoothing).mean();
    golden.compare(name, loss);
    loss.backward({}, /*retain_graph=*/true);
    for (const auto& [tensor, value] : golden.expected) {
      if (!tensor.starts_with(prefix)) continue;
      golden.compare(
          tensor, model.weights().find(tensor.substr(std::string(prefix).size()))->second.grad());
      ++gradients;
    }
  }
  CHECK(gradients > 20);
  // The same in chunks of rows. The golden values lack the output projection's gradient, so it is
  // compared with the gradient from the whole logits.
  const std::string output = model.config().tied ? "shared.weight" : "lm_head.weight";
  const Tensor of_whole = model.weights().find(output)->second.grad().clone();
  for (const auto& [weight, tensor] : model.weights()) tensor.mutable_grad() = Tensor();
  const Tensor chunked = model.smoothed_losses(decoded, wanted, 0.1).mean();
  golden.compare("loss_smoothed", chunked);
  chunked.backward({}, /*retain_graph=*/true);
  check_relative("grad_smoothed." + output, model.weights().find(output)->second.grad(), of_whole,
                 1e-5);

  // Longer texts than the furthest distance with its own bucket.
  const at::NoGradGuard no_grad;
  const auto whole = [&](const char* name) {
    const Tensor& ids = golden.expected.at(name);
    return packed_rows_of(ids, at::ones_like(ids).to(at::kBool));
  };
  const PackedSequences long_sources = whole("long.input_ids");
  const Tensor long_encoded = model.encode_sources(long_sources, Hooks(), nullptr);
  golden.compare("long.encoder_last_hidden_state", long_encoded);
  golden.compare(
      "long.decoder_last_hidden_state",
      model.decode(whole("long.decoder_input_ids"), long_sources, long_encoded, Hooks(), nullptr));
  const Tensor& positions = golden.expected.at("buckets.relative_position");
  for (std::int64_t i = 0; i < positions.size(0); ++i) {
    const auto distance = positions[i].item<std::int64_t>();
    for (const auto& [name, both] :
         {std::pair{"buckets.bidirectional", true}, std::pair{"buckets.causal", false}}) {
      CHECK(relative_bucket(distance, both, model.config().num_buckets,
                            model.config().max_distance) ==
            golden.expected.at(name)[i].item<std::int64_t>());
    }
  }
}

/// Checks a tied model whose decoder output is not scaled.
void check_unscaled(const std::filesystem::path& folder, const nlohmann::json& tolerances,
                    const std::filesystem::path& expected) {
  const Tensors inputs = read_tensors(folder / "expected.safetensors");
  const Tensors wanted = read_tensors(expected);
  const T5 model = trainable_t5(T5::load(folder));
  const Tensor mask = inputs.at("attention_mask").to(at::kBool);
  const Tensor kept = inputs.at("labels") != -100;
  const PackedSequences sources = packed_rows_of(inputs.at("input_ids"), mask);
  const PackedSequences targets = packed_rows_of(inputs.at("decoder_input_ids"), kept);
  const Tensor encoded = model.encode_sources(sources, Hooks(), nullptr);
  const Tensor logits = model.logits(model.decode(targets, sources, encoded, Hooks(), nullptr));
  const Tensor loss = smoothed_losses(logits, inputs.at("labels").index({kept}), 0.0).mean();
  loss.backward();
  const auto compare = [&](const std::string& name, const Tensor& found, const Tensor& golden) {
    check_close(name, found, golden, tolerances.at("atol"), tolerances.at("rtol"));
  };
  compare("loss", loss, wanted.at("loss"));
  compare("logits", logits.narrow(1, 0, 16), wanted.at("logits_first_16").index({kept}));
  compare("gradient", model.weights().find("shared.weight")->second.grad().narrow(0, 0, 16),
          wanted.at("grad.shared.weight.first_16"));
}

}  // namespace

TEST_CASE("every T5 of the golden models matches Hugging Face", "[trainer][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  testing::worst_difference() = {};
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    if (read_json(entry.path() / "config.json").value("model_type", "") != "t5") continue;
    INFO(entry.path().filename().string());
    check_t5(entry.path());
    ++ran;
  }
  testing::golden_ran("models/t5", ran);
  testing::print_worst_difference("models/t5");
}

TEST_CASE("a T5 computes the same with the config.json that transformers 5 saves",
          "[trainer][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models)) {
    const std::filesystem::path& folder = entry.path();
    if (!std::filesystem::exists(folder / "config.v5.json")) continue;
    if (read_json(folder / "config.json").value("model_type", "") != "t5") continue;
    INFO(folder.filename().string());
    const testing::TempDir copy;
    for (const char* const file : {"model.safetensors", "expected.json", "expected.safetensors"}) {
      std::filesystem::create_symlink(folder / file, copy.path() / file);
    }
    std::filesystem::create_symlink(folder / "config.v5.json", copy.path() / "config.json");
    check_t5(copy.path());
    ++ran;
    if (!std::filesystem::exists(folder / "v5_unscaled.json")) continue;
    const auto unscaled = read_json(folder / "v5_unscaled.json");
    auto old_config = read_json(folder / "config.json");
    old_config["tie_word_embeddings"] = false;
    for (const auto& config : {unscaled.at("config"), old_config}) {
      std::filesystem::remove(copy.path() / "config.json");
      copy.write("config.json", config.dump());
      check_unscaled(copy.path(), unscaled, folder / "v5_unscaled.safetensors");
      ++ran;
    }
  }
  testing::golden_ran("models/t5 of transformers 5", ran);
}

TEST_CASE("a T5 has the embeddings that transformers 5 reads under any of their names",
          "[trainer]") {
  const auto folder = testing::own_golden() / "transformers5/t5_embeddings";
  const Tensors all = read_tensors(folder / "weights.safetensors");
  const testing::TempDir copy;
  std::filesystem::create_symlink(folder / "config.json", copy.path() / "config.json");
  const auto file = copy.path() / "model.safetensors";
  std::ifstream cases(folder / "cases.jsonl");
  int computed = 0;
  int refused = 0;
  for (std::string line; std::getline(cases, line);) {
    INFO(line);
    const auto golden = nlohmann::json::parse(line);
    std::vector<std::pair<std::string, TensorView>> stored;
    for (const auto& [name, tensor] : all) {
      if (name.find('.') != std::string::npos) stored.emplace_back(name, to_view(tensor));
    }
    for (const auto& [name, matrix] : golden.at("stored").items()) {
      stored.emplace_back(name, to_view(all.at(matrix.get<std::string>())));
    }
    write_safetensors(file, stored);
    if (golden.at("embeddings") == 2) {
      CHECK_THROWS_WITH(T5::load(copy.path()),
                        Catch::Matchers::StartsWith(file.string() + ": tensor ") &&
                            Catch::Matchers::EndsWith(
                                ", must be equal: petlab's T5 has one embedding for encoder and "
                                "decoder"));
      ++refused;
      continue;
    }
    const T5 model = T5::load(copy.path());
    const auto packed = [&](const char* name) {
      const Tensor ids = at::tensor(golden.at(name).get<std::vector<std::int64_t>>()).unsqueeze(0);
      return packed_rows_of(ids, at::ones_like(ids).to(at::kBool));
    };
    const PackedSequences sources = packed("source");
    const at::NoGradGuard no_grad;
    const Tensor encoded = model.encode_sources(sources, Hooks(), nullptr);
    const Tensor logits =
        model.logits(model.decode(packed("target"), sources, encoded, Hooks(), nullptr));
    std::vector<float> wanted;
    for (const auto& row : golden.at("logits")) {
      for (const auto& value : row) wanted.push_back(value.get<float>());
    }
    check_close("logits", logits, at::tensor(wanted).view(logits.sizes()), 1e-5, 1e-5);
    ++computed;
  }
  CHECK(computed == 11);
  CHECK(refused == 3);
}

TEST_CASE("a smoothed loss and its gradient match the formula", "[trainer]") {
  const double smoothing = GENERATE(0.0, 0.1);
  Tensor logits = at::empty({7, 33}, at::kFloat);
  fill_normal(5, 1, 2.0, {logits.mutable_data_ptr<float>(), 7 * 33});
  logits = logits.to(at::kDouble).requires_grad_(true);
  const Tensor targets = at::tensor({0, 32, 5, 5, 1, 17, 30}, at::kLong);
  const Tensor weights = at::arange(1, 8, at::kDouble);
  (smoothed_losses(logits, targets, smoothing) * weights).sum().backward();
  const Tensor found = logits.grad().clone();
  logits.mutable_grad() = Tensor();
  const Tensor log_p = at::log_softmax(logits, 1);
  const Tensor wanted = -(1 - smoothing) * log_p.gather(1, targets.unsqueeze(1)).squeeze(1) -
                        smoothing / 33 * log_p.sum(1);
  check_relative("losses", smoothed_losses(logits, targets, smoothing), wanted, 1e-12);
  (wanted * weights).sum().backward();
  check_relative("gradient", found, logits.grad(), 1e-12);
}
