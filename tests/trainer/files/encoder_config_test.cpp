#include "trainer/backbones/encoder_config.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

constexpr const char* kRobertaBase = R"({
  "model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
  "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514,
  "type_vocab_size": 1, "layer_norm_eps": 1e-05, "pad_token_id": 1, "hidden_act": "gelu"})";

std::string refusal(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    parse_encoder_config(text, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("roberta-base has the paper's number of parameters and 512 tokens", "[trainer][files]") {
  const EncoderConfig config = parse_encoder_config(kRobertaBase, "config.json");
  CHECK(config.kind == EncoderKind::roberta);
  CHECK(config.parameters() == 124'645'632);
  CHECK(config.first_position() == 2);
  CHECK(config.max_tokens() == 512);
  CHECK(config.hidden_dropout == 0.1);
  CHECK(encoder_tensors(config).size() == 5 + 12 * 16);
}

TEST_CASE("an invalid encoder configuration is refused with its field", "[trainer][files]") {
  const auto refused = [](const std::string& from, const std::string& to) {
    return refusal(kRobertaBase, from, to);
  };
  CHECK(refused("\"roberta\"", "\"gpt2\"") ==
        "config.json: model_type is \"gpt2\", must be bert or roberta");
  CHECK(refused("\"hidden_size\"", "\"hidden\"") == "config.json: hidden_size is missing");
  CHECK(refused("768", "\"768\"") ==
        "config.json: hidden_size is \"768\", must be a whole number in 1..1000000");
  CHECK(refused("768", "770") ==
        "config.json: hidden_size is 770, must be a multiple of num_attention_heads, 12");
  CHECK(refused("514", "2") ==
        "config.json: max_position_embeddings is 2, must be more than 2, the first token's "
        "position");
  CHECK(refused("1e-05", "-1") == "config.json: layer_norm_eps is -1, must be a number in [0, 1)");
  CHECK(refused("\"gelu\"", "\"silu\"") ==
        "config.json: hidden_act is \"silu\", must be gelu, gelu_new, gelu_pytorch_tanh or relu");
  CHECK(refused("\"hidden_act\": \"gelu\"", "\"position_embedding_type\": \"relative_key\"") ==
        "config.json: position_embedding_type is \"relative_key\", must be absolute");
  CHECK(refused("50265", "1e30") ==
        "config.json: vocab_size is 1e+30, must be a whole number in 1..100000000");
  CHECK_THROWS_WITH(parse_encoder_config("[1]", "config.json"),
                    "config.json: is a JSON array, expected an object");
  CHECK_THROWS_AS(parse_encoder_config("{", "config.json"), Error);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(refused("50265", deep) == "config.json: must have at most 64 levels of nesting");
}

TEST_CASE("the small encoder's weights are all found", "[trainer][files]") {
  const auto folder = testing::minilm();
  if (!folder) return;
  const EncoderConfig config = read_encoder_config(*folder);
  CHECK(config.kind == EncoderKind::bert);
  CHECK(config.d_model == 384);
  const BackboneWeights weights = load_encoder_weights(*folder, config);
  CHECK(weights.tensors.size() == encoder_tensors(config).size());
  CHECK(weights.unused.empty());
}

}  // namespace
}  // namespace petlab::trainer
