#include <cmath>

#include "trainer/backbones/blocks.h"
#include "trainer/compute/operations.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// The reference implementation's choices for a kind of backbone.
struct AdapterForm {
  Activation activation = Activation::relu;
  double deviation = 0.02;  // standard deviation of the initial weights
  bool transposed = true;  // the reference stores scores as (in, out), which determines their range
};

AdapterForm form_in(const Backbone& backbone) {
  if (backbone.shape().model_type == "t5") return {Activation::gelu_tanh, 0.01, false};
  return {};
}

/// The Pfeiffer adapter after the feed-forward sub-layer (reference/method.md, "RoBERTa adapter
/// placement", "T5 adapter placement"): z = up(act(down(norm(y + x)))) + y, without norm if none
/// follows the sub-layer.
class Adapter final : public Module {
 public:
  Adapter(const ModuleRequest& request, const CarrierRow& at, const AdapterForm& form)
      : activation_(form.activation),
        down_(weight_plan(request, "down.weight", at.layers,
                          {request.config.bottleneck, at.width_out}),
              request.placement),
        down_bias_(bias_plan(request, "down.bias", at.layers, request.config.bottleneck),
                   request.placement),
        up_(weight_plan(request, "up.weight", at.layers, {at.width_out, request.config.bottleneck}),
            request.placement),
        up_bias_(bias_plan(request, "up.bias", at.layers, at.width_out), request.placement) {
    init_normal(down_.values(), request.seed, Init::adapter_down, form.deviation);
    init_normal(up_.values(), request.seed, Init::adapter_up, form.deviation);
    const auto bound = [](std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
    const double by_width = bound(at.width_out);
    const double by_bottleneck = bound(request.config.bottleneck);
    init_masks(down_, request.seed, Init::adapter_down, form.transposed ? by_bottleneck : by_width);
    init_masks(up_, request.seed, Init::adapter_up, form.transposed ? by_width : by_bottleneck);
  }

  std::vector<MaskedWeight*> weights() override { return {&down_, &down_bias_, &up_, &up_bias_}; }

  bool acts_after_dropout(Site site) const override { return site == Site::feed_forward_output; }

  Tensor after_dropout(const SubLayerOutput& at) const override {
    const std::int64_t l = at.place.layer;
    const Tensor inner =
        activate(apply_linear(at.sum, down_.layer(l), down_bias_.layer(l)), activation_);
    return apply_linear(inner, up_.layer(l), up_bias_.layer(l));
  }

 private:
  Activation activation_;
  MaskedWeight down_, down_bias_, up_, up_bias_;
};

}  // namespace

std::unique_ptr<Module> make_adapter(const ModuleRequest& request, const Backbone& backbone) {
  return std::make_unique<Adapter>(
      request, carrier_row(request, backbone, Site::feed_forward_output), form_in(backbone));
}

}  // namespace petlab::trainer
