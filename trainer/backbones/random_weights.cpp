#include "trainer/backbones/random_weights.h"

#include <cmath>
#include <span>
#include <string>

#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

double deviation_of(const std::string& name, const T5Config& config) {
  const auto one_by_root = [](std::int64_t width) {
    return 1 / std::sqrt(static_cast<double>(width));
  };
  if (name == "shared.weight" || name == "lm_head.weight") return 1;
  if (name.ends_with(".q.weight")) return one_by_root(config.d_model * config.d_kv);
  if (name.ends_with(".o.weight")) return one_by_root(config.inner());
  if (name.ends_with(".wo.weight")) return one_by_root(config.d_ff);
  return one_by_root(config.d_model);
}

void draw_normal(Tensor& weight, std::uint64_t seed, std::uint64_t number, double deviation) {
  fill_normal(seed, number, deviation,
              {weight.mutable_data_ptr<float>(), static_cast<std::size_t>(weight.numel())});
}

}  // namespace

Backbone::Weights random_t5_weights(const T5Config& config, double factor, std::uint64_t seed) {
  Backbone::Weights weights;
  std::uint64_t number = 0;
  for (const WantedTensor& wanted : t5_tensors(config)) {
    Tensor weight = at::ones(wanted.shape, at::kFloat);
    ++number;
    if (wanted.name.ends_with("layer_norm.weight")) {
      weight.mul_(factor);
    } else {
      draw_normal(weight, seed, number, factor * deviation_of(wanted.name, config));
    }
    weights.emplace(wanted.name, weight);
  }
  return weights;
}

Backbone::Weights random_encoder_weights(const EncoderConfig& config, double deviation,
                                         std::uint64_t seed) {
  const bool roberta = config.kind == EncoderKind::roberta;
  Backbone::Weights weights;
  std::uint64_t number = 0;
  for (const WantedTensor& wanted : encoder_tensors(config)) {
    Tensor weight = at::zeros(wanted.shape, at::kFloat);
    ++number;
    if (wanted.name.ends_with("LayerNorm.weight")) {
      weight.fill_(1);
    } else if (!wanted.name.ends_with(".bias")) {
      draw_normal(weight, seed, number, deviation);
    }
    const bool padded = wanted.name.ends_with("word_embeddings.weight") ||
                        (roberta && wanted.name.ends_with("position_embeddings.weight"));
    if (padded) weight.select(0, config.pad_token_id).zero_();
    weights.emplace(wanted.name, weight);
  }
  return weights;
}

}  // namespace petlab::trainer
