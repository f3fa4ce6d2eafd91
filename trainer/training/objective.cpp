#include "trainer/training/objective.h"

#include "trainer/training/head_objective.h"

namespace petlab::trainer {

Tensor ModelPass::encode(const EncoderInput& input, LastLayer last) const {
  if (!module.has_backbones()) return frozen.encode(input, module, last, dropout);
  const std::int64_t trials = input.sequences.trials();
  if (trials == 1) return module.backbone(frozen, 0).encode(input, module, last, dropout);
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < trials; ++k) {
    std::optional<Dropout> own;
    if (dropout != nullptr) {
      own = *dropout;
      own->seeds = {dropout->seeds[static_cast<std::size_t>(k)]};
    }
    parts.push_back(module.backbone(frozen, k).encode(part_of_trial(input, k), module, last,
                                                      own ? &*own : nullptr));
  }
  return at::cat(parts, 0);
}

std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const Backbone& backbone,
                                          std::span<const std::uint64_t> seeds) {
  return std::make_unique<HeadObjective>(task, number, backbone, seeds);
}

}  // namespace petlab::trainer
