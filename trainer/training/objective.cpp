#include "trainer/training/objective.h"

#include "trainer/training/head_objective.h"

namespace petlab::trainer {

Tensor ModelPass::encode(const EncoderInput& input, LastLayer last) const {
  return module.backbone(frozen).encode(input, module, last, dropout);
}

std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const Backbone& backbone,
                                          std::span<const std::uint64_t> seeds) {
  return std::make_unique<HeadObjective>(task, number, backbone, seeds);
}

}  // namespace petlab::trainer
