#include "trainer/training/objective.h"

#include "trainer/training/head_objective.h"
#include "trainer/training/text_objective.h"

namespace petlab::trainer {

std::unique_ptr<Objective> make_objective(const sweeps::TaskDeclaration& task, std::uint64_t number,
                                          const sweeps::TrialConfig& config,
                                          const Pretrained& pretrained) {
  if (is_text_to_text(pretrained.model)) {
    return std::make_unique<TextObjective>(task, config, pretrained);
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
                                         pretrained.model, config.seed.value);
}

}  // namespace petlab::trainer
