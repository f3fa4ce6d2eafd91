#include <cmath>

#include "trainer/compute/operations.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// The Pfeiffer adapter after the feed-forward sub-layer (reference/method.md, "RoBERTa adapter
/// placement"): z = up(relu(down(norm(y + x)))) + y.
class Adapter final : public Module {
 public:
  Adapter(const ModuleRequest& request, const CarrierRow& at)
      : down_(weight_plan(request, "down.weight", at.layers,
                          {request.config.bottleneck, at.width_out}),
              request.placement),
        down_bias_(bias_plan(request, "down.bias", at.layers, request.config.bottleneck),
                   request.placement),
        up_(weight_plan(request, "up.weight", at.layers, {at.width_out, request.config.bottleneck}),
            request.placement),
        up_bias_(bias_plan(request, "up.bias", at.layers, at.width_out), request.placement) {
    init_normal(down_.values(), request.seeds, Init::adapter_down, 0.02);
    init_normal(up_.values(), request.seeds, Init::adapter_up, 0.02);
    // The reference keeps its scores transposed, hence these fan-ins.
    init_masks(down_, request.seeds, Init::adapter_down,
               1 / std::sqrt(static_cast<double>(request.config.bottleneck)));
    init_masks(up_, request.seeds, Init::adapter_up,
               1 / std::sqrt(static_cast<double>(at.width_out)));
  }

  std::vector<MaskedWeight*> weights() override { return {&down_, &down_bias_, &up_, &up_bias_}; }

  bool acts_on(Site site) const override { return site == Site::feed_forward_output; }

  Tensor after_dropout(const SubLayerOutput& at) const override {
    const std::int64_t l = at.place.layer;
    const Tensor a = add_norm(at.output, at.residual, *at.norm);
    const Tensor inner =
        at::relu(trial_linear(a, down_.layer(l), down_bias_.layer(l), at.place.trial_rows));
    return trial_linear(inner, up_.layer(l), up_bias_.layer(l), at.place.trial_rows) + at.output;
  }

 private:
  MaskedWeight down_, down_bias_, up_, up_bias_;
};

}  // namespace

std::unique_ptr<Module> make_adapter(const ModuleRequest& request, const Backbone& backbone) {
  return std::make_unique<Adapter>(request,
                                   carrier_row(request, backbone, Site::feed_forward_output));
}

}  // namespace petlab::trainer
