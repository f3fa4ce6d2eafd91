#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Trains every weight of the backbone, on a copy for each trial.
class FullFinetuning final : public Module {
 public:
  FullFinetuning(const ModuleRequest& request, const Backbone& frozen)
      : apart_(request.placement.compute != request.placement.master) {
    const auto trials = static_cast<std::int64_t>(request.seeds.size());
    std::vector<Backbone::Weights> used(request.seeds.size());
    for (const auto& [name, tensor] : frozen.weights()) {
      std::vector<std::int64_t> shape = tensor.sizes().vec();
      shape.insert(shape.begin(), trials);
      Parameter trained{name, at::empty(shape, request.placement.trained()),
                        at::zeros(shape, request.placement.trained()), Rate::module,
                        frozen.is_decayed(name)};
      trained.trial_dimension_in_files = false;
      trained.value.copy_(tensor.detach());
      for (std::int64_t k = 0; k < trials; ++k) {
        // Leaves share the trained weight's memory, unless the backbone computes in another type.
        Tensor leaf = apart_ ? tensor.detach().clone() : trained.value.select(0, k).detach();
        leaf.requires_grad_(true);
        leaf.mutable_grad() = apart_ ? at::zeros_like(leaf) : trained.gradient.select(0, k);
        used[static_cast<std::size_t>(k)].emplace(name, leaf);
      }
      trained_.push_back(std::move(trained));
    }
    for (Backbone::Weights& weights : used)
      backbones_.push_back(frozen.with_weights(std::move(weights)));
  }

  void merge(std::int64_t /*task*/, bool /*frozen*/) override {
    each_leaf([](const Tensor& leaf, const Tensor& value, const Tensor&) { leaf.copy_(value); });
  }

  void gather() override {
    each_leaf([](const Tensor& leaf, const Tensor&, Tensor gradient) {
      gradient += leaf.grad();
      leaf.mutable_grad().zero_();
    });
  }

  std::vector<Parameter> parameters() override { return trained_; }

  std::vector<StoredTensor> stored(std::int64_t trial) override {
    std::vector<StoredTensor> all;
    for (const Parameter& parameter : trained_) {
      all.push_back({parameter.name, parameter.value.select(0, trial)});
    }
    return all;
  }

  bool has_backbones() const override { return true; }
  const Backbone& backbone(const Backbone&, std::int64_t trial) const override {
    return *backbones_[static_cast<std::size_t>(trial)];
  }

 private:
  /// Calls visit(leaf, value, gradient) for each trial's weights, if leaves have separate memory.
  template <typename Visit>
  void each_leaf(Visit visit) {
    if (!apart_) return;
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < backbones_.size(); ++k) {
      const auto trial = static_cast<std::int64_t>(k);
      for (const Parameter& parameter : trained_) {
        visit(backbones_[k]->weights().find(parameter.name)->second,
              parameter.value.select(0, trial), parameter.gradient.select(0, trial));
      }
    }
  }

  bool apart_;
  std::vector<Parameter> trained_;                    // in the order of their names
  std::vector<std::unique_ptr<Backbone>> backbones_;  // (K)
};

}  // namespace

std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Backbone& backbone) {
  return std::make_unique<FullFinetuning>(request, backbone);
}

}  // namespace petlab::trainer
