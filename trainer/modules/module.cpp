#include "trainer/modules/module.h"

#include <array>
#include <stdexcept>

#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

constexpr std::array kKinds{
    ModuleKind{"adapter", make_adapter},
    ModuleKind{"lora", make_lora},
    ModuleKind{"prefix", make_prefix, /*trains_backbone=*/false, /*has_prefix=*/true},
    ModuleKind{"full_finetuning", make_full_finetuning, /*trains_backbone=*/true},
    ModuleKind{"head_only", make_head_only},
    ModuleKind{"hyperformer++", make_hyperformer},
};

// Each parameter has streams for its values, its layers' scores and its tasks' scores.
constexpr std::uint64_t kStreamsOfParameter = 4;

std::uint64_t stream_of(Init what, std::uint64_t kind) {
  return static_cast<std::uint64_t>(what) * kStreamsOfParameter + kind;
}

template <typename Fill>
void fill_by(Tensor& values, Fill fill) {
  std::vector<float> numbers(static_cast<std::size_t>(values.numel()));
  fill(std::span<float>(numbers));
  values.copy_(at::from_blob(numbers.data(), values.sizes(), at::kFloat));
}

}  // namespace

void Module::merge(std::int64_t task, bool frozen) {
  for (MaskedWeight* weight : weights()) weight->merge(task, frozen);
}

void Module::gather() {
  for (MaskedWeight* weight : weights()) weight->gather();
}

std::vector<StoredTensor> Module::stored() {
  std::vector<StoredTensor> all;
  for (const MaskedWeight* weight : weights()) all.push_back(weight->stored());
  return all;
}

std::vector<Parameter> Module::parameters() {
  std::vector<Parameter> all;
  for (MaskedWeight* weight : weights()) weight->append_parameters(all);
  return all;
}

std::span<const ModuleKind> module_kinds() { return kKinds; }

const ModuleKind& module_kind(std::string_view kind) {
  for (const ModuleKind& row : kKinds) {
    if (row.kind == kind) return row;
  }
  throw std::invalid_argument("module.kind is '" + std::string(kind) +
                              "', which this trainer does not support");
}

std::unique_ptr<Module> make_module(const ModuleRequest& request, const Backbone& backbone) {
  return module_kind(request.config.kind).make(request, backbone);
}

CarrierRow carrier_row(const ModuleRequest& request, const Backbone& backbone, Site site) {
  const std::vector<Carrier> carriers = backbone.carriers(site);
  if (carriers.empty()) {
    throw std::invalid_argument("module.kind is '" + request.config.kind +
                                "', for which the backbone (" + backbone.shape().model_type +
                                ") has no place");
  }
  const CarrierRow row{static_cast<std::int64_t>(carriers.size()), carriers.front().width_in,
                       carriers.front().width_out};
  for (const Carrier& carrier : carriers) {
    if (carrier.width_in == row.width_in && carrier.width_out == row.width_out) continue;
    throw std::invalid_argument("module.kind is '" + request.config.kind +
                                "', which needs layers of equal width: layer " +
                                std::to_string(carrier.layer) + " differs from layer 0");
  }
  return row;
}

WeightPlan weight_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                       std::vector<std::int64_t> shape) {
  WeightPlan plan;
  plan.name = std::move(name);
  plan.shape = std::move(shape);
  plan.layers = layers;
  plan.tasks = request.tasks > 1 ? request.tasks : 0;
  plan.share = request.config.share;
  plan.mask = request.config.mask;
  plan.sparsity_ratio = request.config.sparsity_ratio;
  plan.combine = request.config.combine;
  return plan;
}

WeightPlan bias_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                     std::int64_t size) {
  WeightPlan plan = weight_plan(request, std::move(name), layers, {size});
  plan.tasks = 0;
  plan.mask = metrics::MaskKind::none;
  plan.decayed = false;
  return plan;
}

void init_normal(Tensor& values, std::uint64_t seed, Init what, double std_dev) {
  fill_by(values,
          [&](std::span<float> out) { fill_normal(seed, stream_of(what, 0), std_dev, out); });
}

void init_uniform(Tensor& values, std::uint64_t seed, Init what, double bound) {
  fill_by(values,
          [&](std::span<float> out) { fill_uniform(seed, stream_of(what, 0), bound, out); });
}

void init_masks(MaskedWeight& weight, std::uint64_t seed, Init what, double bound) {
  if (weight.scores().defined()) {
    fill_by(weight.scores(),
            [&](std::span<float> out) { fill_uniform(seed, stream_of(what, 1), bound, out); });
  }
  if (weight.task_scores().defined()) {
    fill_by(weight.task_scores(),
            [&](std::span<float> out) { fill_uniform(seed, stream_of(what, 2), bound, out); });
  }
  if (weight.plan().mask == metrics::MaskKind::random) {
    weight.draw_random_masks(seed, stream_of(what, 3));
  }
}

}  // namespace petlab::trainer
