#include "trainer/backbones/modernbert_config.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"

namespace petlab::trainer {
namespace {

// ModernBERT-base's, as transformers 4.48 saved it.
constexpr const char* kBase = R"({
  "model_type": "modernbert", "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22,
  "num_attention_heads": 12, "intermediate_size": 1152, "max_position_embeddings": 8192,
  "norm_eps": 1e-05, "layer_norm_eps": 1e-12, "pad_token_id": 50283,
  "global_attn_every_n_layers": 3, "local_attention": 128, "global_rope_theta": 160000.0,
  "local_rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false, "norm_bias": false,
  "attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0,
  "classifier_dropout": 0.0, "classifier_pooling": "mean", "hidden_activation": "gelu",
  "position_embedding_type": "absolute"})";

/// kBase with `from` replaced.
std::string changed_base(const std::string& from, const std::string& to) {
  std::string text = kBase;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string modernbert_refusal(const std::string& from, const std::string& to) {
  try {
    parse_modernbert_config(changed_base(from, to), "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("ModernBERT-base's configuration is read", "[trainer][files]") {
  const ModernBertConfig config = parse_modernbert_config(kBase, "config.json");
  CHECK(config.num_layers() == 22);
  CHECK(config.window == 64);
  CHECK(config.norm_eps == 1e-5);
  CHECK(config.max_tokens == 8192);
  for (std::size_t l = 0; l < config.local.size(); ++l) CHECK(config.local[l] == (l % 3 != 0));
  // One tensor of the embeddings and three norms' worth more than six a layer, less one.
  CHECK(modernbert_tensors(config).size() == 22 * 6 + 2);
  ModernBertConfig other = config;
  other.local_theta = other.global_theta;
  CHECK(parse_modernbert_config(changed_base("10000.0", "null"), "config.json") == other);
  other = config;
  other.dropout = 0.1;
  std::string dropped = kBase;
  for (const char* field :
       {"attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_dropout"}) {
    const std::string from = std::string(field) + "\": 0.0";
    dropped.replace(dropped.find(from), from.size(), std::string(field) + "\": 0.1");
  }
  CHECK(parse_modernbert_config(dropped, "config.json") == other);
}

TEST_CASE("a ModernBERT that petlab would compute differently is refused by field",
          "[trainer][files]") {
  const std::string at = "config.json: ";
  CHECK(modernbert_refusal("\"modernbert\"", "\"bert\"") ==
        at + "model_type is \"bert\", must be modernbert");
  CHECK(modernbert_refusal("\"gelu\"", "\"silu\"") ==
        at + "hidden_activation is \"silu\", must be gelu");
  CHECK(modernbert_refusal("\"mean\"", "\"max\"") ==
        at + "classifier_pooling is \"max\", must be cls or mean");
  for (const char* field : {"embedding_dropout", "mlp_dropout", "classifier_dropout"}) {
    CHECK(modernbert_refusal(std::string(field) + "\": 0.0", std::string(field) + "\": 0.1") ==
          at + field +
              " is 0.1, must be 0, as attention_dropout is: petlab has one rate "
              "(training.dropout sets another)");
  }
  CHECK(modernbert_refusal("768", "756") ==
        at + "hidden_size is 756, must be an even multiple of num_attention_heads, 12");
  CHECK(
      modernbert_refusal("\"mlp_bias\"", "\"rope_scaling\": {\"type\": \"yarn\"}, \"mlp_bias\"") ==
      at + "rope_scaling is set, must be null");
  CHECK(modernbert_refusal("\"mlp_bias\"", "\"layer_types\": [], \"mlp_bias\"") ==
        at + "layer_types must be a list of 22 types, as num_hidden_layers says");
  CHECK(modernbert_refusal(
            "\"mlp_bias\"",
            R"("rope_parameters": {"full_attention": {"rope_type": "yarn"}}, "mlp_bias")") ==
        at + "rope_parameters.full_attention: rope_type is \"yarn\", must be default");
  CHECK(modernbert_refusal("\"mlp_bias\"",
                           R"("rope_parameters": {"full_attention": {}}, "mlp_bias")") ==
        at + "rope_parameters.sliding_attention is missing, must be an object with rope_theta");
}

TEST_CASE("both forms of a ModernBERT's configuration mean the same",
          "[trainer][files][golden][wide]") {
  const auto models = testing::golden("models");
  if (!models) return;
  int forms = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*models)) {
    for (const char* other : {"config.v5.json", "config.hub.json"}) {
      if (!entry.path().filename().string().starts_with("modernbert") ||
          !std::filesystem::exists(entry.path() / other)) {
        continue;
      }
      INFO(entry.path().filename().string());
      const auto file = FileBytes::map(entry.path() / other);
      const auto bytes = file->bytes();
      CHECK(parse_modernbert_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                    file->name()) == read_modernbert_config(entry.path()));
      ++forms;
    }
  }
  testing::golden_ran("models/forms of modernbert", forms);
}

}  // namespace
}  // namespace petlab::trainer
