#include "trainer/backbones/device_attention.h"

#include <torch/custom_class.h>

#include <algorithm>
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
  std::int64_t most_queries = 0, most_keys = 0;  // of a sequence, or as many as filling rows
  std::vector<std::int64_t> trial_sequences;     // (trials + 1)
  std::vector<Tensor> held;                      // keeps the memory that the arguments point to

  const long long* numbers(const Tensor& of) {
    held.push_back(of);
    return reinterpret_cast<const long long*>(of.const_data_ptr<std::int64_t>());
  }

  void launch(const char* name, std::int64_t most) const {
    const int bytes = form.number == at::kDouble ? 8 : 4;
    const int warps = attention_warps(static_cast<int>(form.size), bytes);
    const std::int64_t rows = warps * kAttentionRowsAWarp;
    kernels->launch(
        "attention", name, form,
        {(most + rows - 1) / rows, arguments.heads, arguments.sequences + 1, warps * 32},
        &arguments);
  }
};

c10::intrusive_ptr<KernelPlan> plan_of(DeviceKernels& kernels, const Tensor& query,
                                       const Tensor& key, const AttentionShape& shape,
                                       std::int64_t prefix, const Dropout* dropout) {
  auto plan = c10::make_intrusive<KernelPlan>();
  const AttentionBuckets& buckets = *shape.buckets;
  const std::int64_t d_head = query.size(1) / shape.num_heads;
  plan->kernels = &kernels;
  plan->form = {query.scalar_type(), d_head};
  plan->most_queries = std::max(buckets.most_queries, query.size(0) - shape.query_offsets.back());
  plan->most_keys = std::max(prefix + buckets.most_keys, key.size(0) - shape.keys.tokens());
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
  a.sequences = static_cast<int>(shape.keys.sequences());
  a.query_rows = query.size(0);
  a.key_rows = key.size(0);
  if (shape.position_bias.defined()) {
    a.longest = static_cast<int>((shape.position_bias.size(1) + 1) / 2);
  }
  return plan;
}

/// x, or a copy if a row's numbers are not next to each other.
Tensor with_whole_rows(const Tensor& x) { return x.stride(1) == 1 ? x : x.contiguous(); }

struct Parts {
  Tensor query, key, value;
};
/// The parts of a tensor that joins their columns.
Parts parts_of(const Tensor& joined) {
  const std::vector<Tensor> parts = joined.chunk(3, 1);
  return {parts[0], parts[1], parts[2]};
}

const void* data(const Tensor& of) { return of.defined() ? of.const_data_ptr() : nullptr; }

/// Attention of query, key and value, or of one tensor that joins their columns.
class DeviceAttention : public Function<DeviceAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query_or_joined,
                        const std::optional<Tensor>& given_key,
                        const std::optional<Tensor>& given_value,
                        const std::optional<Tensor>& given_prefix_key,
                        const std::optional<Tensor>& given_prefix_value, DeviceKernels& kernels,
                        const AttentionShape& shape, const Dropout* dropout, bool with_gradient) {
    const Tensor first = with_whole_rows(query_or_joined);
    const bool joined = !given_key.has_value();
    const Parts parts =
        joined ? parts_of(first)
               : Parts{first, with_whole_rows(*given_key), with_whole_rows(*given_value)};
    const auto& [query, key, value] = parts;
    Tensor prefix_key, prefix_value;
    if (given_prefix_key) {
      prefix_key = given_prefix_key->contiguous();
      prefix_value = given_prefix_value->contiguous();
    }
    const auto plan =
        plan_of(kernels, query, key, shape, prefix_key.defined() ? prefix_key.size(1) : 0, dropout);
    AttentionArguments& a = plan->arguments;
    if (shape.position_bias.defined()) {
      plan->held.push_back(shape.position_bias.detach().contiguous());
      a.bias = data(plan->held.back());
    }
    Tensor output = at::empty(query.sizes(), query.options());
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
      context->saved_data["joined"] = joined;
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
    const bool joined = context->saved_data["joined"].toBool();
    const auto gradient_of = [](const Tensor& rows, std::int64_t width) {
      return at::empty({rows.size(0), width}, rows.options());
    };
    Tensor to_joined;
    Parts to;
    if (joined) {
      to_joined = gradient_of(query, 3 * query.size(1));
      to = parts_of(to_joined);
    } else {
      to = {gradient_of(query, query.size(1)), gradient_of(saved[1], query.size(1)),
            gradient_of(saved[2], query.size(1))};
    }
    a.gradient_stride = static_cast<int>(to.query.stride(0));
    Tensor to_prefix_key, to_prefix_value;
    if (a.prefix > 0) {
      // Each sequence writes its own gradient, so the sum has a fixed order.
      to_prefix_key = at::empty({a.sequences, a.prefix, query.size(1)}, query.options());
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
    a.query_gradient = to.query.mutable_data_ptr();
    a.key_gradient = to.key.mutable_data_ptr();
    a.value_gradient = to.value.mutable_data_ptr();
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
    variable_list all = joined ? variable_list{to_joined, Tensor(), Tensor()}
                               : variable_list{to.query, to.key, to.value};
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
  if (!shape.key_rows.empty() || shape.window >= 0 ||
      (at::GradMode::is_enabled() && shape.position_bias.defined() &&
       shape.position_bias.requires_grad())) {
    return nullptr;
  }
  return device_kernels(device);
}

std::optional<Tensor> device_attention(DeviceKernels& kernels, const std::vector<Tensor>& rows,
                                       const std::optional<Prefix>& prefix,
                                       const AttentionShape& shape, const Dropout* dropout) {
  if (shape.buckets == nullptr) return std::nullopt;
  const bool joined = rows.size() == 1;
  const std::int64_t width = rows[0].size(1) / (joined ? 3 : 1);
  const std::int64_t bytes = rows[0].scalar_type() == at::kDouble ? 8 : 4;
  if (width / shape.num_heads * bytes > kMostBytes) return std::nullopt;
  const auto wants = [](const Tensor& of) { return of.requires_grad(); };
  const bool with_gradient =
      at::GradMode::is_enabled() && (std::any_of(rows.begin(), rows.end(), wants) ||
                                     (prefix && (wants(prefix->keys) || wants(prefix->values))));
  const auto if_apart = [&](std::size_t i) {
    return joined ? std::nullopt : std::optional(rows[i]);
  };
  return DeviceAttention::apply(rows[0], if_apart(1), if_apart(2),
                                prefix ? std::optional(prefix->keys) : std::nullopt,
                                prefix ? std::optional(prefix->values) : std::nullopt, kernels,
                                shape, dropout, with_gradient);
}

}  // namespace petlab::trainer
