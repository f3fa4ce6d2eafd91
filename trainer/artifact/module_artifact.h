#pragma once

#include <string>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/artifact/artifact.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Stores the model's weights, masks and heads in `artifact` (values, sparse, masks, head, labels,
/// module): everything that a prediction needs. Values and heads refer to the model's memory, so
/// the model must not change before the artifact is written.
void store_model(TrialModel& model, const sweeps::TrialConfig& config,
                 const std::vector<sweeps::TaskDeclaration>& tasks, Artifact& artifact);

/// The inverse: creates a model with the artifact's configuration on `pretrained`, ready for
/// predictions. Throws Error naming a tensor that is missing or has the wrong shape.
TrialModel load_model(const Artifact& artifact, const sweeps::TrialConfig& config,
                      const std::vector<sweeps::TaskDeclaration>& tasks,
                      const Pretrained& pretrained);

}  // namespace petlab::trainer
