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

}  // namespace

Backbone::Weights random_t5_weights(const T5Config& config, double factor, std::uint64_t seed) {
  Backbone::Weights weights;
  std::uint64_t number = 0;
  for (const WantedTensor& wanted : t5_tensors(config)) {
    Tensor made = at::ones(wanted.shape, at::kFloat);
    ++number;
    if (wanted.name.ends_with("layer_norm.weight")) {
      made.mul_(factor);
    } else {
      fill_normal(seed, number, factor * deviation_of(wanted.name, config),
                  {made.mutable_data_ptr<float>(), static_cast<std::size_t>(made.numel())});
    }
    weights.emplace(wanted.name, made);
  }
  return weights;
}

}  // namespace petlab::trainer
