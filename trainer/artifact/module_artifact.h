#pragma once

#include <string>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/artifact/artifact.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Puts the model's stored weights, masks and heads into `artifact` (values, sparse, masks, head,
/// labels, module): what a prediction needs and no more. Values and heads are the model's own
/// memory, so that the model must not change before the artifact is written.
void store_model(TrialModel& model, const sweeps::TrialConfig& config,
                 const std::vector<sweeps::TaskDeclaration>& tasks, Artifact& artifact);

/// The opposite: a model of the artifact's configuration on `pretrained`, ready to predict. Throws
/// Error naming the tensor that is missing or misshapen.
TrialModel load_model(const Artifact& artifact, const sweeps::TrialConfig& config,
                      const std::vector<sweeps::TaskDeclaration>& tasks,
                      const Pretrained& pretrained);

}  // namespace petlab::trainer
