#include <stdexcept>

#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Every weight of the backbone is trained, on a copy.
class FullFinetuning final : public Module {
 public:
  explicit FullFinetuning(const Encoder& frozen) : encoder_(frozen.trainable_copy()) {
    for (const auto& [name, tensor] : encoder_.weights()) {
      tensor.mutable_grad() = at::zeros_like(tensor);
    }
  }

  std::vector<Parameter> parameters() override {
    std::vector<Parameter> all;
    for (const auto& [name, tensor] : encoder_.weights()) {
      const bool decayed = !name.ends_with(".bias") && name.find("LayerNorm") == std::string::npos;
      all.push_back({name, tensor.detach(), tensor.grad(), Rate::module, decayed});
    }
    return all;
  }

  const Encoder& backbone(const Encoder&) const override { return encoder_; }

 private:
  Encoder encoder_;
};

}  // namespace

std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Encoder& backbone) {
  if (request.seeds.size() != 1) {
    throw std::invalid_argument("module.kind full_finetuning cannot be trained in a gang");
  }
  return std::make_unique<FullFinetuning>(backbone);
}

}  // namespace petlab::trainer
