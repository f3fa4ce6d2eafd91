#include <stdexcept>

#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Every weight of the backbone is trained, on a copy.
class FullFinetuning final : public Module {
 public:
  explicit FullFinetuning(const Backbone& frozen) {
    Backbone::Weights copies;
    for (const auto& [name, tensor] : frozen.weights()) {
      const Tensor copy = tensor.detach().clone().requires_grad_(true);
      copy.mutable_grad() = at::zeros_like(copy);
      copies.emplace(name, copy);
    }
    own_ = frozen.with_weights(std::move(copies));
  }

  std::vector<Parameter> parameters() override {
    std::vector<Parameter> all;
    for (const auto& [name, tensor] : own_->weights()) {
      all.push_back({name, tensor.detach(), tensor.grad(), Rate::module, own_->is_decayed(name)});
    }
    return all;
  }

  std::vector<StoredTensor> stored(std::int64_t /*trial*/) override {
    std::vector<StoredTensor> all;
    for (const auto& [name, tensor] : own_->weights()) all.push_back({name, tensor.detach()});
    return all;
  }

  const Backbone& backbone(const Backbone&) const override { return *own_; }

 private:
  std::unique_ptr<Backbone> own_;
};

}  // namespace

std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Backbone& backbone) {
  if (request.seeds.size() != 1) {
    throw std::invalid_argument("module.kind full_finetuning cannot be trained in a gang");
  }
  return std::make_unique<FullFinetuning>(backbone);
}

}  // namespace petlab::trainer
