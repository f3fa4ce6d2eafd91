#include "trainer/modules/module.h"

#include <array>
#include <stdexcept>

#include "trainer/compute/operations.h"
#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

constexpr std::array kKinds{
    ModuleKind{"adapter", make_adapter},     ModuleKind{"lora", make_lora},
    ModuleKind{"prefix", make_prefix},       ModuleKind{"full_finetuning", make_full_finetuning},
    ModuleKind{"head_only", make_head_only}, ModuleKind{"hyperformer++", make_hyperformer},
};

// Each parameter has streams for its values, its layers' scores and its tasks' scores.
constexpr std::uint64_t kStreamsOfParameter = 4;

std::uint64_t stream_of(Init what, std::uint64_t kind) {
  return static_cast<std::uint64_t>(what) * kStreamsOfParameter + kind;
}

template <typename Fill>
void fill_trials(Tensor& values, std::span<const std::uint64_t> seeds, Fill fill) {
  std::vector<float> numbers(static_cast<std::size_t>(values.numel() / values.size(0)));
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    fill(seeds[k], std::span<float>(numbers));
    Tensor to = values.select(0, static_cast<std::int64_t>(k));
    to.copy_(at::from_blob(numbers.data(), to.sizes(), at::kFloat));
  }
}

}  // namespace

void Module::merge(std::int64_t task, bool frozen) {
  for (MaskedWeight* weight : weights()) weight->merge(task, frozen);
}

void Module::gather() {
  for (MaskedWeight* weight : weights()) weight->gather();
}

std::vector<StoredTensor> Module::stored(std::int64_t trial) {
  std::vector<StoredTensor> all;
  for (MaskedWeight* weight : weights()) all.push_back(weight->stored(trial));
  return all;
}

std::vector<Parameter> Module::parameters() {
  std::vector<Parameter> all;
  for (MaskedWeight* weight : weights()) weight->append_parameters(all);
  return all;
}

std::span<const ModuleKind> module_kinds() { return kKinds; }

std::unique_ptr<Module> make_module(const ModuleRequest& request, const Backbone& backbone) {
  for (const ModuleKind& row : kKinds) {
    if (row.kind == request.config.kind) return row.make(request, backbone);
  }
  throw std::invalid_argument("module.kind is '" + request.config.kind +
                              "', which this trainer does not support");
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
  plan.trials = static_cast<std::int64_t>(request.seeds.size());
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

Tensor trial_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const std::int64_t> trial_rows) {
  if (weight.size(0) == 1) {
    return apply_linear(x, weight.squeeze(0), bias.defined() ? bias.squeeze(0) : bias);
  }
  // Split everything once: backward through a single slice would fill a tensor of all trials'
  // weights.
  const std::vector<Tensor> rows = split_trials(x, trial_rows), weights = weight.unbind(0);
  std::vector<Tensor> biases(weights.size());
  if (bias.defined()) biases = bias.unbind(0);
  std::vector<Tensor> parts;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    parts.push_back(apply_linear(rows[k], weights[k], biases[k]));
  }
  return at::cat(parts, 0);
}

std::vector<Tensor> split_trials(const Tensor& x, std::span<const std::int64_t> trial_rows) {
  std::vector<std::int64_t> sizes;
  for (std::size_t k = 0; k + 1 < trial_rows.size(); ++k) {
    sizes.push_back(trial_rows[k + 1] - trial_rows[k]);
  }
  return x.split_with_sizes(sizes, 0);
}

void init_normal(Tensor& values, std::span<const std::uint64_t> seeds, Init what, double std_dev) {
  fill_trials(values, seeds, [&](std::uint64_t seed, std::span<float> out) {
    fill_normal(seed, stream_of(what, 0), std_dev, out);
  });
}

void init_uniform(Tensor& values, std::span<const std::uint64_t> seeds, Init what, double bound) {
  fill_trials(values, seeds, [&](std::uint64_t seed, std::span<float> out) {
    fill_uniform(seed, stream_of(what, 0), bound, out);
  });
}

void init_masks(MaskedWeight& weight, std::span<const std::uint64_t> seeds, Init what,
                double bound) {
  if (weight.scores().defined()) {
    fill_trials(weight.scores(), seeds, [&](std::uint64_t seed, std::span<float> out) {
      fill_uniform(seed, stream_of(what, 1), bound, out);
    });
  }
  if (weight.task_scores().defined()) {
    fill_trials(weight.task_scores(), seeds, [&](std::uint64_t seed, std::span<float> out) {
      fill_uniform(seed, stream_of(what, 2), bound, out);
    });
  }
  if (weight.plan().mask == metrics::MaskKind::random) {
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      weight.draw_random_masks(static_cast<std::int64_t>(k), seeds[k], stream_of(what, 3));
    }
  }
}

}  // namespace petlab::trainer
