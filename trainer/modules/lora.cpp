#include <cmath>

#include "trainer/compute/operations.h"
#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// LoRA on query and value: y + alpha / r · x Aᵀ Bᵀ, with a prototype for each of the two. Layers
/// of cross-attention, if used, come after those of self-attention.
class Lora final : public Module {
 public:
  Lora(const ModuleRequest& request, const CarrierRow& query, const CarrierRow& value,
       std::int64_t self_layers)
      : self_layers_(self_layers),
        cross_(request.config.cross_attention),
        scale_(request.config.alpha / static_cast<double>(request.config.rank)),
        query_a_(weight_plan(request, "query.lora_A", query.layers,
                             {request.config.rank, query.width_in}),
                 request.placement),
        query_b_(weight_plan(request, "query.lora_B", query.layers,
                             {query.width_out, request.config.rank}),
                 request.placement),
        value_a_(weight_plan(request, "value.lora_A", value.layers,
                             {request.config.rank, value.width_in}),
                 request.placement),
        value_b_(weight_plan(request, "value.lora_B", value.layers,
                             {value.width_out, request.config.rank}),
                 request.placement) {
    const auto bound = [](std::int64_t fan_in) {
      return 1 / std::sqrt(static_cast<double>(fan_in));
    };
    const double query_bound = bound(query.width_in);
    const double value_bound = bound(value.width_in);
    const double b_bound = bound(request.config.rank);
    init_uniform(query_a_.values(), request.seed, Init::lora_query_a, query_bound);
    init_uniform(value_a_.values(), request.seed, Init::lora_value_a, value_bound);
    init_masks(query_a_, request.seed, Init::lora_query_a, query_bound);
    init_masks(value_a_, request.seed, Init::lora_value_a, value_bound);
    init_masks(query_b_, request.seed, Init::lora_query_b, b_bound);
    init_masks(value_b_, request.seed, Init::lora_value_b, b_bound);
  }

  std::vector<MaskedWeight*> weights() override {
    return {&query_a_, &query_b_, &value_a_, &value_b_};
  }

  bool acts_on(Site site) const override {
    return site == Site::query || site == Site::value ||
           (cross_ && (site == Site::cross_query || site == Site::cross_value));
  }

  Tensor projected(const ProjectionOutput& at) const override {
    const HookPlace& place = at.place;
    const bool query = place.site == Site::query || place.site == Site::cross_query;
    const std::int64_t l = place.layer + (is_cross_attention(place.site) ? self_layers_ : 0);
    const Tensor& a = (query ? query_a_ : value_a_).layer(l);
    const Tensor& b = (query ? query_b_ : value_b_).layer(l);
    const Tensor low = apply_linear(at.input, a, {}) * scale_;
    return at.output + apply_linear(low, b, {});
  }

 private:
  std::int64_t self_layers_;
  bool cross_;
  double scale_;
  MaskedWeight query_a_, query_b_, value_a_, value_b_;
};

}  // namespace

std::unique_ptr<Module> make_lora(const ModuleRequest& request, const Backbone& backbone) {
  CarrierRow query = carrier_row(request, backbone, Site::query);
  CarrierRow value = carrier_row(request, backbone, Site::value);
  const std::int64_t self_layers = query.layers;
  if (request.config.cross_attention) {
    // Both kinds of attention have the same widths in every backbone that has both.
    query.layers += carrier_row(request, backbone, Site::cross_query).layers;
    value.layers += carrier_row(request, backbone, Site::cross_value).layers;
  }
  return std::make_unique<Lora>(request, query, value, self_layers);
}

}  // namespace petlab::trainer
