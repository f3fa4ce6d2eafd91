#include "trainer/training/trial_model.h"

namespace petlab::trainer {

TrialModel::TrialModel(const sweeps::TrialConfig& config,
                       const std::vector<sweeps::TaskDeclaration>& tasks,
                       const Pretrained& pretrained)
    : backbone_(pretrained.model) {
  ModuleRequest request;
  request.config = config.module;
  request.tasks = static_cast<std::int64_t>(tasks.size());
  request.seed = config.seed.value;
  request.placement = backbone_.placement();
  module_ = make_module(request, backbone_);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    objectives_.push_back(make_objective(tasks[t], t, config, pretrained));
  }
}

void TrialModel::merge(std::size_t task) {
  module_->merge(static_cast<std::int64_t>(task), frozen_);
  objectives_[task]->merge();
}

void TrialModel::gather(std::size_t task) {
  module_->gather();
  objectives_[task]->gather();
}

std::vector<Parameter> TrialModel::parameters() {
  std::vector<Parameter> all = module_->parameters();
  for (std::size_t t = 0; t < objectives_.size(); ++t) {
    for (Parameter& parameter : objectives_[t]->parameters()) {
      parameter.task = t;
      all.push_back(std::move(parameter));
    }
  }
  return all;
}

}  // namespace petlab::trainer
