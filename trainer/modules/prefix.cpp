#include <cmath>

#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// Keys and values before a layer's own (reference/method.md, "Prefix"). During training, an MLP
/// computes them from an embedding of the positions. Masks act on its output P.
class PrefixTuning final : public Module {
 public:
  PrefixTuning(const ModuleRequest& request, const CarrierRow& at)
      : width_(at.width_out),
        embedding_(mlp_plan(request, "embedding", {request.config.prefix_length, at.width_in}),
                   request.placement),
        hidden_(mlp_plan(request, "mlp.0.weight", {request.config.prefix_hidden, at.width_in}),
                request.placement),
        hidden_bias_(mlp_plan(request, "mlp.0.bias", {request.config.prefix_hidden}),
                     request.placement),
        output_(mlp_plan(request, "mlp.2.weight",
                         {outputs(request, at) * 2 * at.width_out, request.config.prefix_hidden}),
                request.placement),
        output_bias_(mlp_plan(request, "mlp.2.bias", {outputs(request, at) * 2 * at.width_out}),
                     request.placement),
        p_(p_plan(request, at), request.placement) {
    // torch's initialisation of an embedding and of linear layers.
    const double in_bound = 1 / std::sqrt(static_cast<double>(at.width_in));
    const double hidden_bound = 1 / std::sqrt(static_cast<double>(request.config.prefix_hidden));
    init_normal(embedding_.values(), request.seed, Init::prefix_embedding, 1);
    init_uniform(hidden_.values(), request.seed, Init::prefix_hidden, in_bound);
    init_uniform(hidden_bias_.values(), request.seed, Init::prefix_hidden_bias, in_bound);
    init_uniform(output_.values(), request.seed, Init::prefix_output, hidden_bound);
    init_uniform(output_bias_.values(), request.seed, Init::prefix_output_bias, hidden_bound);
    init_masks(p_, request.seed, Init::prefix_p,
               1 / std::sqrt(static_cast<double>(2 * at.width_out * request.config.prefix_length)));
  }

  std::vector<MaskedWeight*> weights() override {
    return {&embedding_, &hidden_, &hidden_bias_, &output_, &output_bias_, &p_};
  }
  std::vector<StoredTensor> stored() override { return {p_.stored()}; }

  void merge(std::int64_t task, bool frozen) override {
    if (!frozen) {
      for (MaskedWeight* weight : mlp()) weight->merge(0, false);
      const Tensor inner =
          at::tanh(at::linear(embedding_.layer(0), hidden_.layer(0), hidden_bias_.layer(0)));
      const Tensor all = at::linear(inner, output_.layer(0), output_bias_.layer(0));
      // (P, length, 2 width)
      mlp_output_ = all.view({all.size(0), -1, 2 * width_}).transpose(0, 1).contiguous();
      const at::NoGradGuard no_grad;
      p_.values().copy_(mlp_output_);
    }
    p_.merge(task, frozen);
  }

  void gather() override {
    p_.gather();
    mlp_output_.backward(p_.values_gradient().to(mlp_output_.scalar_type()));
    mlp_output_.reset();
    for (MaskedWeight* weight : mlp()) weight->gather();
    p_.values_gradient().zero_();
  }

  bool acts_on(Site site) const override { return site == Site::keys_and_values; }

  std::optional<Prefix> prefix(const HookPlace& at) const override {
    const Tensor p = p_.layer(at.layer).unsqueeze(0);
    return Prefix{p.narrow(2, 0, width_), p.narrow(2, width_, width_)};
  }

 private:
  /// The weights that compute P.
  std::vector<MaskedWeight*> mlp() {
    return {&embedding_, &hidden_, &hidden_bias_, &output_, &output_bias_};
  }
  static std::int64_t outputs(const ModuleRequest& request, const CarrierRow& at) {
    return request.config.share ? 1 : at.layers;
  }
  static WeightPlan mlp_plan(const ModuleRequest& request, std::string name,
                             std::vector<std::int64_t> shape) {
    WeightPlan plan = bias_plan(request, std::move(name), 1, 0);
    plan.decayed = shape.size() > 1;
    plan.shape = std::move(shape);
    plan.share = true;  // a single MLP, even if the layers do not share its output
    return plan;
  }
  static WeightPlan p_plan(const ModuleRequest& request, const CarrierRow& at) {
    WeightPlan plan =
        weight_plan(request, "P", at.layers, {request.config.prefix_length, 2 * at.width_out});
    plan.trained = false;
    return plan;
  }

  std::int64_t width_;
  MaskedWeight embedding_, hidden_, hidden_bias_, output_, output_bias_, p_;
  Tensor mlp_output_;  // with the graph back to the MLP
};

}  // namespace

std::unique_ptr<Module> make_prefix(const ModuleRequest& request, const Backbone& backbone) {
  return std::make_unique<PrefixTuning>(request,
                                        carrier_row(request, backbone, Site::keys_and_values));
}

}  // namespace petlab::trainer
