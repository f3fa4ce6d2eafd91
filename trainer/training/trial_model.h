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

/// What a trial trains: its module and what the objective of each of its tasks adds to it, on a
/// backbone that others use too and that must outlive it.
class TrialModel {
 public:
  TrialModel(const sweeps::TrialConfig& config, const std::vector<sweeps::TaskDeclaration>& tasks,
             const Pretrained& pretrained);
  /// For trials that differ in their seeds, and are trained at once.
  TrialModel(const sweeps::TrialConfig& config, const std::vector<sweeps::TaskDeclaration>& tasks,
             const Pretrained& pretrained, std::vector<std::uint64_t> seeds);

  Module& module() { return *module_; }
  Objective& objective(std::size_t task) { return *objectives_[task]; }
  std::int64_t trials() const { return trials_; }
  std::size_t tasks() const { return objectives_.size(); }
  const Backbone& backbone() const { return backbone_; }

  /// Of the module and the objectives, in a fixed order; names are unique.
  std::vector<Parameter> parameters();
  /// Masks and merged weights for what follows, for batches of `task`.
  void merge(std::size_t task);
  /// Completes the gradients of parameters() after backward of a batch of `task`.
  void gather(std::size_t task);
  /// Takes values and masks as they are from now on (read from an artifact): for prediction alone.
  void freeze() { frozen_ = true; }

  /// What an objective runs. `dropout` is nullptr outside training.
  ModelPass pass(const Dropout* dropout) const { return {backbone_, *module_, dropout}; }

 private:
  const Backbone& backbone_;
  std::int64_t trials_;
  std::unique_ptr<Module> module_;
  std::vector<std::unique_ptr<Objective>> objectives_;
  bool frozen_ = false;
};

}  // namespace petlab::trainer
