#include <cmath>

#include "trainer/modules/module.h"

namespace petlab::trainer {
namespace {

/// LoRA on query and value: y + alpha / r · x Aᵀ Bᵀ, a prototype for each of the two.
class Lora final : public Module {
 public:
  Lora(const ModuleRequest& request, const CarrierRow& query, const CarrierRow& value)
      : scale_(request.config.alpha / static_cast<double>(request.config.rank)),
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
    init_uniform(query_a_.values(), request.seeds, Init::lora_query_a, query_bound);
    init_uniform(value_a_.values(), request.seeds, Init::lora_value_a, value_bound);
    init_masks(query_a_, request.seeds, Init::lora_query_a, query_bound);
    init_masks(value_a_, request.seeds, Init::lora_value_a, value_bound);
    init_masks(query_b_, request.seeds, Init::lora_query_b, b_bound);
    init_masks(value_b_, request.seeds, Init::lora_value_b, b_bound);
  }

  std::vector<MaskedWeight*> weights() override {
    return {&query_a_, &query_b_, &value_a_, &value_b_};
  }

  bool acts_on(Site site) const override { return site == Site::query || site == Site::value; }

  Tensor projected(const ProjectionOutput& at) const override {
    const bool query = at.place.site == Site::query;
    const Tensor& a = (query ? query_a_ : value_a_).layer(at.place.layer);
    const Tensor& b = (query ? query_b_ : value_b_).layer(at.place.layer);
    const Tensor low = trial_linear(at.input, a, {}, at.place.trial_rows) * scale_;
    return at.output + trial_linear(low, b, {}, at.place.trial_rows);
  }

 private:
  double scale_;
  MaskedWeight query_a_, query_b_, value_a_, value_b_;
};

}  // namespace

std::unique_ptr<Module> make_lora(const ModuleRequest& request, const Backbone& backbone) {
  return std::make_unique<Lora>(request, carrier_row(request, backbone, Site::query),
                                carrier_row(request, backbone, Site::value));
}

}  // namespace petlab::trainer
