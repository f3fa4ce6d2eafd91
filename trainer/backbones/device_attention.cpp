#include "trainer/backbones/device_attention.h"

#include <torch/custom_class.h>

#include <cmath>
#include <utility>
#include <vector>

#include "trainer/backbones/attention_buckets.h"
#include "trainer/compute/dropout_draws.h"
#include "trainer/compute/kernels/arguments.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr std::int64_t kMostBytes = 512;

at::ScalarType sum_type(const Tensor& of) {
  return of.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// Everything that backward needs except the tensors with gradients.
struct KernelPlan : torch::CustomClassHolder {
  DeviceKernels* kernels = nullptr;
  KernelForm form;
  AttentionArguments arguments{};
  std::int64_t sequences = 0, most_queries = 0, most_keys = 0;  // keys with the prefix
  std::int64_t queries = 0, keys = 0;                           // of all sequences
  std::vector<std::int64_t> trial_sequences;                    // (trials + 1)
  std::vector<Tensor> held;  // keeps the memory that the arguments point to

  const long long* numbers(const Tensor& of) {
    held.push_back(of);
    return reinterpret_cast<const long long*>(of.const_data_ptr<std::int64_t>());
  }

  void launch(const char* name, std::int64_t most) const {
    const int bytes = form.number == at::kDouble ? 8 : 4;
    const int warps = attention_warps(static_cast<int>(form.d_head), bytes);
    const std::int64_t rows = warps * kAttentionRowsAWarp;
    kernels->launch("attention", name, form,
                    {(most + rows - 1) / rows, arguments.heads, sequences, warps * 32}, &arguments);
  }
};

c10::intrusive_ptr<KernelPlan> plan_of(DeviceKernels& kernels, const Tensor& query,
                                       const AttentionShape& shape, std::int64_t prefix,
                                       const Dropout* dropout) {
  auto plan = c10::make_intrusive<KernelPlan>();
  const AttentionBuckets& buckets = *shape.buckets;
  const std::int64_t d_head = query.size(1) / shape.num_heads;
  plan->kernels = &kernels;
  plan->form = {query.scalar_type(), d_head};
  plan->sequences = shape.keys.sequences();
  plan->most_queries = buckets.most_queries;
  plan->most_keys = prefix + buckets.most_keys;
  plan->queries = shape.query_offsets.back();
  plan->keys = shape.keys.tokens();
  plan->trial_sequences = shape.keys.trial_sequences;
  AttentionArguments& a = plan->arguments;
  plan->held = {buckets.query_starts, buckets.key_starts};
  a.query_starts = buckets.query_starts.const_data_ptr<int>();
  a.key_starts = buckets.key_starts.const_data_ptr<int>();
  a.trial = plan->numbers(buckets.trials);
  a.example = plan->numbers(buckets.examples);
  if (dropout != nullptr && dropout->attention > 0) {
    const DrawnPlace place{shape.dropout, shape.layer};
    const Tensor keys = round_keys_of(*dropout, {&place, 1}, query.device())
                            .select(0, static_cast<std::int64_t>(shape.dropout))
                            .select(0, shape.layer);
    a.round_keys = plan->numbers(keys);
    a.word_stride = static_cast<int>(keys.stride(1));
    a.step = static_cast<unsigned>(dropout->step);
    a.dropped = dropped_of_65536(dropout->attention);
    a.kept_scale = dropout_scale(dropout->attention);
  }
  a.heads = static_cast<int>(shape.num_heads);
  a.prefix = static_cast<int>(prefix);
  a.causal = shape.causal ? 1 : 0;
  a.scale = shape.scaled ? 1.0 / std::sqrt(static_cast<double>(d_head)) : 1.0;
  a.query_rows = query.size(0);
  if (shape.position_bias.defined()) {
    a.longest = static_cast<int>((shape.position_bias.size(1) + 1) / 2);
  }
  return plan;
}

/// x, or a copy if a row's numbers are not next to each other.
Tensor with_whole_rows(const Tensor& x) { return x.stride(1) == 1 ? x : x.contiguous(); }

const void* data(const Tensor& of) { return of.defined() ? of.const_data_ptr() : nullptr; }

class DeviceAttention : public Function<DeviceAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given_query,
                        const Tensor& given_key, const Tensor& given_value,
                        const std::optional<Tensor>& given_prefix_key,
                        const std::optional<Tensor>& given_prefix_value, DeviceKernels& kernels,
                        const AttentionShape& shape, const Dropout* dropout, bool with_gradient) {
    const Tensor query = with_whole_rows(given_query);
    const Tensor key = with_whole_rows(given_key);
    const Tensor value = with_whole_rows(given_value);
    Tensor prefix_key, prefix_value;
    if (given_prefix_key) {
      prefix_key = given_prefix_key->contiguous();
      prefix_value = given_prefix_value->contiguous();
    }
    const auto plan =
        plan_of(kernels, query, shape, prefix_key.defined() ? prefix_key.size(1) : 0, dropout);
    AttentionArguments& a = plan->arguments;
    if (shape.position_bias.defined()) {
      plan->held.push_back(shape.position_bias.detach().contiguous());
      a.bias = data(plan->held.back());
    }
    Tensor output = with_zero_filling(query, query.size(1), plan->queries);
    Tensor log_sums;
    if (with_gradient) {
      log_sums =
          at::empty({shape.num_heads, query.size(0)}, query.options().dtype(sum_type(query)));
      a.log_sums = log_sums.mutable_data_ptr();
    }
    a.query_stride = static_cast<int>(query.stride(0));
    a.key_stride = static_cast<int>(key.stride(0));
    a.value_stride = static_cast<int>(value.stride(0));
    a.query = data(query);
    a.key = data(key);
    a.value = data(value);
    a.prefix_key = data(prefix_key);
    a.prefix_value = data(prefix_value);
    a.output = output.mutable_data_ptr();
    plan->launch("attention_forward", plan->most_queries);
    if (with_gradient) {
      context->save_for_backward({query, key, value, prefix_key, prefix_value, output, log_sums});
      context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    }
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto capsule = context->saved_data["plan"].toCapsule();
    const auto& plan = static_cast<const KernelPlan&>(*capsule);
    KernelPlan backward_plan = plan;
    AttentionArguments& a = backward_plan.arguments;
    const Tensor& query = saved[0];
    const Tensor gradient = gradients[0].contiguous();
    const Tensor deltas = at::empty_like(saved[6]);
    const std::int64_t width = query.size(1);
    Tensor to_query, to_key, to_value;
    if (saved[1].size(0) == query.size(0) && plan.keys == plan.queries) {
      // One tensor, so that joined projections need no other.
      const std::vector<Tensor> all = with_zero_filling(query, 3 * width, plan.queries).chunk(3, 1);
      to_query = all[0];
      to_key = all[1];
      to_value = all[2];
    } else {
      to_query = with_zero_filling(query, width, plan.queries);
      to_key = with_zero_filling(saved[1], width, plan.keys);
      to_value = with_zero_filling(saved[2], width, plan.keys);
    }
    a.gradient_stride = static_cast<int>(to_query.stride(0));
    Tensor to_prefix_key, to_prefix_value;
    if (a.prefix > 0) {
      // Each sequence writes its own gradient, so the sum has a fixed order.
      to_prefix_key = at::empty({plan.sequences, a.prefix, query.size(1)}, query.options());
      to_prefix_value = at::empty_like(to_prefix_key);
    }
    a.query = data(query);
    a.key = data(saved[1]);
    a.value = data(saved[2]);
    a.prefix_key = data(saved[3]);
    a.prefix_value = data(saved[4]);
    a.output = const_cast<void*>(data(saved[5]));
    a.log_sums = const_cast<void*>(data(saved[6]));
    a.output_gradient = data(gradient);
    a.deltas = deltas.mutable_data_ptr();
    a.query_gradient = to_query.mutable_data_ptr();
    a.key_gradient = to_key.mutable_data_ptr();
    a.value_gradient = to_value.mutable_data_ptr();
    a.prefix_key_gradient = const_cast<void*>(data(to_prefix_key));
    a.prefix_value_gradient = const_cast<void*>(data(to_prefix_value));
    backward_plan.launch("attention_to_query", plan.most_queries);
    backward_plan.launch("attention_to_keys", plan.most_keys);
    if (a.prefix > 0) {
      const auto by_trial = [&](const Tensor& all) {
        std::vector<Tensor> of_trials;
        for (std::size_t k = 0; k + 1 < plan.trial_sequences.size(); ++k) {
          const std::int64_t from = plan.trial_sequences[k];
          of_trials.push_back(all.narrow(0, from, plan.trial_sequences[k + 1] - from).sum(0));
        }
        return at::stack(of_trials);
      };
      to_prefix_key = by_trial(to_prefix_key);
      to_prefix_value = by_trial(to_prefix_value);
    }
    variable_list all{to_query, to_key, to_value};
    if (a.prefix > 0) {
      all.push_back(to_prefix_key);
      all.push_back(to_prefix_value);
    } else {
      all.resize(5);
    }
    all.resize(9);
    return all;
  }
};

}  // namespace

DeviceKernels* kernels_for_attention(const AttentionShape& shape, at::Device device) {
  if (!shape.key_rows.empty() || (at::GradMode::is_enabled() && shape.position_bias.defined() &&
                                  shape.position_bias.requires_grad())) {
    return nullptr;
  }
  return device_kernels(device);
}

std::optional<Tensor> device_attention(DeviceKernels& kernels, const Tensor& query,
                                       const Tensor& key, const Tensor& value,
                                       const std::optional<Prefix>& prefix,
                                       const AttentionShape& shape, const Dropout* dropout) {
  const std::int64_t bytes = query.scalar_type() == at::kDouble ? 8 : 4;
  if (query.size(1) / shape.num_heads * bytes > kMostBytes) return std::nullopt;
  const auto wants = [](const Tensor& of) { return of.requires_grad(); };
  const bool with_gradient =
      at::GradMode::is_enabled() && (wants(query) || wants(key) || wants(value) ||
                                     (prefix && (wants(prefix->keys) || wants(prefix->values))));
  return DeviceAttention::apply(query, key, value,
                                prefix ? std::optional(prefix->keys) : std::nullopt,
                                prefix ? std::optional(prefix->values) : std::nullopt, kernels,
                                shape, dropout, with_gradient);
}

}  // namespace petlab::trainer
