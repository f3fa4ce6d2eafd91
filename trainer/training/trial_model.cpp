#include "trainer/training/trial_model.h"

namespace petlab::trainer {

TrialModel::TrialModel(const sweeps::TrialConfig& config,
                       const std::vector<sweeps::TaskDeclaration>& tasks, const Backbone& backbone)
    : backbone_(backbone) {
  ModuleRequest request;
  request.config = config.module;
  request.tasks = static_cast<std::int64_t>(tasks.size());
  request.seeds = {config.seed.value};
  request.dtype = backbone.dtype();
  module_ = make_module(request, backbone);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::int64_t outputs = tasks[t].kind == sweeps::TaskKind::regression
                                     ? 1
                                     : static_cast<std::int64_t>(tasks[t].classes.size());
    heads_.emplace_back(backbone.shape().d_model, outputs, request.seeds, t, request.dtype);
  }
}

std::vector<Parameter> TrialModel::parameters() {
  std::vector<Parameter> all = module_->parameters();
  for (std::size_t t = 0; t < heads_.size(); ++t) {
    for (Parameter& parameter : heads_[t].parameters()) {
      parameter.task = t;
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

Tensor TrialModel::logits(std::size_t task, const EncoderInput& input, const Dropout* dropout) {
  const Tensor first =
      module_->backbone(backbone_).encode(input, *module_, LastLayer::first_tokens, dropout);
  return heads_[task].forward(first, first_token_rows(input.sequences), dropout);
}

}  // namespace petlab::trainer
