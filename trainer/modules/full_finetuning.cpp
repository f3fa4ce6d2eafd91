#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Trains every weight of the backbone, on a copy.
class FullFinetuning final : public Module {
 public:
  FullFinetuning(const ModuleRequest& request, const Backbone& frozen)
      : apart_(request.placement.compute != request.placement.master) {
    Backbone::Weights used;
    for (const auto& [name, tensor] : frozen.weights()) {
      Parameter trained{name, at::empty(tensor.sizes(), request.placement.trained()),
                        at::zeros(tensor.sizes(), request.placement.trained()), Rate::module,
                        frozen.is_decayed(name)};
      trained.value.copy_(tensor.detach());
      // Leaves share the trained weight's memory, unless the backbone computes in another type.
      Tensor leaf = apart_ ? tensor.detach().clone() : trained.value.detach();
      leaf.requires_grad_(true);
      leaf.mutable_grad() = apart_ ? at::zeros_like(leaf) : trained.gradient;
      used.emplace(name, leaf);
      trained_.push_back(std::move(trained));
    }
    backbone_ = frozen.with_weights(std::move(used));
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

  std::vector<StoredTensor> stored() override {
    std::vector<StoredTensor> all;
    for (const Parameter& parameter : trained_) all.push_back({parameter.name, parameter.value});
    return all;
  }

  const Backbone& backbone(const Backbone&) const override { return *backbone_; }

 private:
  /// Calls visit(leaf, value, gradient) for each weight, if leaves have separate memory.
  template <typename Visit>
  void each_leaf(Visit visit) {
    if (!apart_) return;
    const at::NoGradGuard no_grad;
    for (const Parameter& parameter : trained_) {
      visit(backbone_->weights().find(parameter.name)->second, parameter.value, parameter.gradient);
    }
  }

  bool apart_;
  std::vector<Parameter> trained_;  // in the order of their names
  std::unique_ptr<Backbone> backbone_;
};

}  // namespace

std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Backbone& backbone) {
  return std::make_unique<FullFinetuning>(request, backbone);
}

}  // namespace petlab::trainer
