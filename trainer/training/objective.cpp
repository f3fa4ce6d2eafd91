#include "trainer/training/objective.h"

#include "trainer/training/head_objective.h"
#include "trainer/training/text_objective.h"

namespace petlab::trainer {

const Backbone& ModelPass::backbone(std::int64_t trial) const {
  return module.has_backbones() ? module.backbone(frozen, trial) : frozen;
}

Tensor ModelPass::encode(const EncoderInput& input, LastLayer last) const {
  if (!module.has_backbones()) return frozen.encode(input, module, last, dropout);
  const std::int64_t trials = input.sequences.trials();
  if (trials == 1) return backbone(0).encode(input, module, last, dropout);
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < trials; ++k) {
    std::optional<Dropout> trial_dropout;
    if (dropout != nullptr) trial_dropout = dropout->of_trial(k);
    parts.push_back(backbone(k).encode(part_of_trial(input, k), module, last,
                                       trial_dropout ? &*trial_dropout : nullptr));
  }
  return at::cat(parts, 0);
}

std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const sweeps::TrialConfig& config,
                                          const Pretrained& pretrained,
                                          std::span<const std::uint64_t> seeds) {
  if (is_text_to_text(pretrained.model)) {
    return std::make_unique<TextObjective>(task, config, pretrained, seeds);
  }
  if (task.kind == sweeps::TaskKind::text) {
    throw std::invalid_argument("task " + task.name +
                                " generates texts, which needs a T5: the backbone is an encoder");
  }
  if (config.decoding != sweeps::DecodingConfig()) {
    throw std::invalid_argument(
        "decoding is set, which applies to a T5 only: the backbone is an encoder");
  }
  return std::make_unique<HeadObjective>(task, number, config.training.label_smoothing,
                                         pretrained.model, seeds);
}

}  // namespace petlab::trainer
