#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/backbones/hooks.h"

namespace petlab::trainer {

/// Explains why two trials with the same backbone cannot be trained together on one pass of it:
/// returns the first field in which they must agree but do not, with both values. Returns
/// std::nullopt if they can.
///
/// Trials may differ in everything that concerns only their own rows: seed, task, batch size,
/// epochs, rates, module. They must agree in what a pass computes for all rows: the rates of
/// dropout, the number type, and the length of prefixes. A trial that trains the whole backbone
/// shares nothing.
std::optional<std::string> why_not_in_one_gang(const sweeps::TrialConfig& one,
                                               const sweeps::TrialConfig& other);

/// The hooks of the trials of a gang: each acts on the rows of its own trial.
class GangHooks final : public Hooks {
 public:
  /// The hooks of trials 0, 1, …, which must outlive this object.
  explicit GangHooks(std::vector<const Hooks*> trials) : trials_(std::move(trials)) {}

  bool acts_on(Site site) const override;
  bool acts_after_dropout(Site site) const override;
  Tensor before_dropout(const SubLayerOutput& at) const override;
  Tensor after_dropout(const SubLayerOutput& at) const override;
  Tensor projected(const ProjectionOutput& at) const override;
  std::optional<Prefix> prefix(const HookPlace& at) const override;

 private:
  std::vector<const Hooks*> trials_;
};

/// Splits x (rows, …) into each trial's rows: `sizes` has their numbers.
std::vector<Tensor> split_rows(const Tensor& x, std::span<const std::int64_t> sizes);

}  // namespace petlab::trainer
