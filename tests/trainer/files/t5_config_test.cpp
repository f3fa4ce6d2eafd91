#include "trainer/backbones/t5_config.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"
#include "trainer/files/safetensors.h"

namespace petlab::trainer {
namespace {

constexpr const char* kT5Base = R"({
  "model_type": "t5", "vocab_size": 32128, "d_model": 768, "d_kv": 64, "num_heads": 12,
  "d_ff": 3072, "num_layers": 12, "relative_attention_num_buckets": 32, "dropout_rate": 0.1,
  "layer_norm_epsilon": 1e-06, "feed_forward_proj": "relu"})";

std::string changed_t5(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string t5_refusal(const std::string& from, const std::string& to) {
  try {
    parse_t5_config(changed_t5(kT5Base, from, to), "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("t5-base has the paper's number of parameters", "[trainer][files]") {
  const T5Config config = parse_t5_config(kT5Base, "config.json");
  std::int64_t parameters = 0;
  for (const WantedTensor& tensor : t5_tensors(config)) parameters += elements(tensor.shape);
  CHECK(parameters == 222'903'552);
  CHECK(config.num_decoder_layers == 12);
  CHECK(config.tied);
  CHECK(!config.gated);
  CHECK(config.activation == Activation::relu);
}

TEST_CASE("a T5 1.1 has a gate, a separate output projection and heads of any width",
          "[trainer][files]") {
  std::string text = changed_t5(kT5Base, "\"relu\"", "\"gated-gelu\"");
  text = changed_t5(text, "\"vocab_size\"", "\"tie_word_embeddings\": false, \"vocab_size\"");
  text = changed_t5(text, "\"d_kv\": 64", "\"d_kv\": 128");
  const T5Config config = parse_t5_config(text, "config.json");
  CHECK(config.gated);
  CHECK(!config.tied);
  CHECK(config.activation == Activation::gelu_tanh);
  CHECK(config.inner() == 1536);
  const auto tensors = t5_tensors(config);
  CHECK(tensors.back().name == "lm_head.weight");
  const auto shape_of = [&](const std::string& name) {
    for (const WantedTensor& tensor : tensors) {
      if (tensor.name == name) return tensor.shape;
    }
    return std::vector<std::int64_t>{};
  };
  using Shape = std::vector<std::int64_t>;
  CHECK(shape_of("encoder.block.3.layer.0.SelfAttention.o.weight") == Shape{768, 1536});
  CHECK(shape_of("decoder.block.3.layer.1.EncDecAttention.q.weight") == Shape{1536, 768});
  CHECK(shape_of("decoder.block.3.layer.2.DenseReluDense.wi_1.weight") == Shape{3072, 768});
  CHECK(shape_of("encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight").empty());
}

TEST_CASE("scale_decoder_outputs decides the scaling, or tie_word_embeddings if it is absent",
          "[trainer][files]") {
  const auto scaled = [](const std::string& fields) {
    return parse_t5_config(changed_t5(kT5Base, "\"vocab_size\"", fields + "\"vocab_size\""), "c")
        .scaled_output;
  };
  CHECK(scaled(""));
  CHECK(scaled("\"tie_word_embeddings\": true, "));
  CHECK_FALSE(scaled("\"tie_word_embeddings\": false, "));
  CHECK_FALSE(scaled("\"tie_word_embeddings\": true, \"scale_decoder_outputs\": false, "));
  CHECK(scaled("\"tie_word_embeddings\": false, \"scale_decoder_outputs\": true, "));
  CHECK(scaled("\"scale_decoder_outputs\": null, "));
}

TEST_CASE("a T5 has its own output projection if the checkpoint's differs from the embedding",
          "[trainer][files]") {
  const testing::TempDir dir;
  const bool tied_in_config = GENERATE(true, false);
  const std::string fields = std::string(R"("num_layers": 1, "tie_word_embeddings": )") +
                             (tied_in_config ? "true" : "false");
  dir.write("config.json", R"({"model_type": "t5", "vocab_size": 3, "d_model": 2, "d_kv": 2,
    "num_heads": 1, "d_ff": 2, )" +
                               fields + "}");
  const T5Config config = read_t5_config(dir.path());
  const std::vector<float> ones(64, 1.0F);
  const std::array<float, 6> other{1, 1, 1, 1, 1, 2};
  const std::array<std::uint16_t, 6> short_ones{0x3F80, 0x3F80, 0x3F80, 0x3F80, 0x3F80, 0x3F80};
  const auto tied_with = [&](const std::optional<TensorView>& output) {
    std::vector<std::pair<std::string, TensorView>> tensors;
    for (const WantedTensor& wanted : t5_tensors(config)) {
      if (wanted.name == "lm_head.weight") continue;
      const auto n = static_cast<std::size_t>(elements(wanted.shape));
      tensors.emplace_back(
          wanted.name,
          TensorView{DType::f32, wanted.shape, std::as_bytes(std::span(ones).first(n)), nullptr});
    }
    if (output) tensors.emplace_back("lm_head.weight", *output);
    write_safetensors(dir.path() / "model.safetensors", tensors);
    const T5Checkpoint found = read_t5_checkpoint(dir.path());
    CHECK(found.weights.unused.empty());
    CHECK(found.weights.tensors.contains("lm_head.weight") == !found.config.tied);
    CHECK(found.config.scaled_output == tied_in_config);
    return found.config.tied;
  };
  const auto view = [](DType dtype, std::vector<std::int64_t> shape, auto values) {
    return TensorView{dtype, std::move(shape), std::as_bytes(values), nullptr};
  };
  CHECK(tied_with(std::nullopt));
  CHECK(tied_with(view(DType::f32, {3, 2}, std::span(ones).first(6))));
  CHECK(tied_with(view(DType::bf16, {3, 2}, std::span(short_ones))));
  CHECK_FALSE(tied_with(view(DType::f32, {3, 2}, std::span(other))));
  CHECK_THROWS_WITH(tied_with(view(DType::f32, {2, 3}, std::span(ones).first(6))),
                    (dir.path() / "model.safetensors").string() +
                        ": tensor lm_head.weight: found [2, 3], expected [3, 2]");
}

TEST_CASE("an invalid T5 configuration is refused with its field", "[trainer][files]") {
  CHECK(t5_refusal("\"t5\"", "\"bert\"") == "config.json: model_type is \"bert\", must be t5");
  CHECK(t5_refusal("\"d_kv\"", "\"kv\"") == "config.json: d_kv is missing");
  CHECK(t5_refusal("\"relu\"", "\"gated-silu\"") ==
        "config.json: feed_forward_proj is \"gated-silu\", must be relu, gelu, gelu_new, "
        "gated-relu, gated-gelu or gated-gelu_new");
  CHECK(t5_refusal("32,", "512,") ==
        "config.json: relative_attention_max_distance is 128, must be more than 256, half of "
        "relative_attention_num_buckets");
  CHECK(t5_refusal("\"vocab_size\"", "\"tie_word_embeddings\": 1, \"vocab_size\"") ==
        "config.json: tie_word_embeddings is 1, must be true or false");
  CHECK(t5_refusal("\"num_heads\": 12", "\"num_heads\": 1000000") ==
        "config.json: num_heads is 1000000, times d_kv, 64, must be at most 1000000");
}

TEST_CASE("near distances have a bucket each, longer ones share buckets", "[trainer][files]") {
  const auto both = [](std::int64_t distance) { return relative_bucket(distance, true, 32, 128); };
  const auto causal = [](std::int64_t distance) {
    return relative_bucket(distance, false, 32, 128);
  };
  CHECK(both(0) == 0);
  CHECK(both(-7) == 7);
  CHECK(both(7) == 23);
  CHECK(both(-8) == 8);
  CHECK(both(-11) == 8);
  CHECK(both(-12) == 9);
  CHECK(both(-127) == 15);
  CHECK(both(100000) == 31);
  CHECK(causal(5) == 0);
  CHECK(causal(-15) == 15);
  CHECK(causal(-16) == 16);
  CHECK(causal(-100000) == 31);
}

}  // namespace
}  // namespace petlab::trainer
