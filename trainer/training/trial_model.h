#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/backbones/backbone.h"
#include "trainer/modules/module.h"
#include "trainer/training/objective.h"

namespace petlab::trainer {

/// The trained parts of a trial: its module and the additions of its tasks' objectives. The
/// backbone is shared with other users and must outlive it.
class TrialModel {
 public:
  TrialModel(const sweeps::TrialConfig& config, const std::vector<sweeps::TaskDeclaration>& tasks,
             const Pretrained& pretrained);

  Module& module() { return *module_; }
  const Module& module() const { return *module_; }
  Objective& objective(std::size_t task) { return *objectives_[task]; }
  std::size_t tasks() const { return objectives_.size(); }
  /// The frozen backbone.
  const Backbone& backbone() const { return backbone_; }

  /// The parameters of the module and the objectives, in a fixed order, with unique names.
  std::vector<Parameter> parameters();
  /// Computes masks and merged weights for the following batches, which are of `task`.
  void merge(std::size_t task);
  /// Completes the gradients of parameters() after the backward pass of a batch of `task`.
  void gather(std::size_t task);
  /// Fixes values and masks as they are, such as those read from an artifact. Only for prediction.
  void freeze() { frozen_ = true; }

  /// The model as objectives run it. `dropout` is nullptr outside training.
  ModelPass pass(const Dropout* dropout) const {
    return {module_->backbone(backbone_), *module_, dropout};
  }

 private:
  const Backbone& backbone_;
  std::unique_ptr<Module> module_;
  std::vector<std::unique_ptr<Objective>> objectives_;
  bool frozen_ = false;
};

}  // namespace petlab::trainer
