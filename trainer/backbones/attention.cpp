#include "trainer/backbones/attention.h"

#include <torch/custom_class.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/backbones/device_attention.h"
#include "trainer/backbones/fused_attention.h"
#include "trainer/compute/attention_kernels.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// The layout of the sequences, kept for backward.
struct Plan {
  std::vector<std::int64_t> query_offsets;
  std::vector<std::int64_t> key_offsets;
  std::span<const std::int64_t> key_rows;   // only valid in forward
  std::vector<std::int64_t> trials;         // (sequences)
  std::vector<std::int64_t> probabilities;  // (sequences + 1): start of each one's probabilities
  std::int64_t heads = 1;
  std::int64_t prefix_length = 0;
  bool scaled = true;
  bool causal = false;
  std::int64_t window = -1;

  Plan(const AttentionShape& shape, std::int64_t prefix)
      : query_offsets(shape.query_offsets.begin(), shape.query_offsets.end()),
        key_offsets(shape.keys.offsets.begin(), shape.keys.offsets.end()),
        key_rows(shape.key_rows),
        heads(shape.num_heads),
        prefix_length(prefix),
        scaled(shape.scaled),
        causal(shape.causal),
        window(shape.window) {
    for (std::size_t k = 0; k + 1 < shape.keys.trial_sequences.size(); ++k) {
      trials.resize(static_cast<std::size_t>(shape.keys.trial_sequences[k + 1]),
                    static_cast<std::int64_t>(k));
    }
    probabilities.push_back(0);
    for (std::size_t s = 0; s < trials.size(); ++s) {
      const std::int64_t keys = prefix_length + key_offsets[s + 1] - key_offsets[s];
      const std::int64_t queries = query_offsets[s + 1] - query_offsets[s];
      probabilities.push_back(probabilities.back() + heads * queries * probability_stride(keys));
    }
  }

  /// Calls work(s) for each sequence, on all threads. Sequences come sorted by length, so long and
  /// short ones are dealt out in turn to give every thread about the same work.
  template <typename Work>
  void each_sequence(const Work& work) const {
    const auto n = static_cast<std::int64_t>(trials.size());
    at::parallel_for(0, n, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) {
        work(static_cast<std::size_t>(i % 2 == 0 ? i / 2 : n - 1 - i / 2));
      }
    });
  }

  template <typename T>
  SequenceAttention<T> sequence(std::size_t s, const Tensor& query, const Tensor& key,
                                const Tensor& value, const Tensor& prefix_key,
                                const Tensor& prefix_value, const Tensor& bias) const {
    const std::int64_t d_model = query.size(1);
    SequenceAttention<T> of;
    of.heads = heads;
    of.d_head = d_model / heads;
    of.queries = query_offsets[s + 1] - query_offsets[s];
    of.tokens = key_offsets[s + 1] - key_offsets[s];
    of.prefix_length = prefix_length;
    of.scaled = scaled;
    of.causal = causal;
    of.window = window;
    if (bias.defined()) {
      of.bias = bias.const_data_ptr<T>();
      of.longest = (bias.size(1) + 1) / 2;
    }
    of.query = query.const_data_ptr<T>() + query_offsets[s] * d_model;
    const std::int64_t key_at = key_rows.empty() ? key_offsets[s] * d_model : 0;
    of.key = key.const_data_ptr<T>() + key_at;
    of.value = value.const_data_ptr<T>() + key_at;
    if (!key_rows.empty()) of.key_rows = key_rows.data() + key_offsets[s];
    if (prefix_length > 0) {
      const std::int64_t at = trials[s] * prefix_length * d_model;
      of.prefix_key = prefix_key.const_data_ptr<T>() + at;
      of.prefix_value = prefix_value.const_data_ptr<T>() + at;
    }
    return of;
  }
};

/// A plan that autograd keeps from forward to backward.
struct KeptPlan : torch::CustomClassHolder {
  Plan plan;
  explicit KeptPlan(Plan of) : plan(std::move(of)) {}
};

/// Fills the dropout multipliers of one sequence: (queries, heads, keys).
template <typename T>
void sequence_dropout(const Dropout& dropout, const AttentionShape& shape, std::size_t s,
                      std::int64_t trial, const SequenceAttention<T>& of,
                      std::vector<T>& multipliers) {
  const auto width = static_cast<std::size_t>(of.heads * of.keys());
  std::vector<float> row(width);
  multipliers.resize(static_cast<std::size_t>(of.queries) * width);
  StreamPlace place;
  place.seed = dropout.seeds[static_cast<std::size_t>(trial)];
  place.purpose = shape.dropout;
  place.step = dropout.step;
  place.layer = static_cast<std::uint64_t>(shape.layer);
  place.example = static_cast<std::uint64_t>(shape.keys.examples[s]);
  for (std::size_t q = 0; q < static_cast<std::size_t>(of.queries); ++q) {
    place.position = q;
    fill_dropout(place, dropout.attention, row);
    std::copy(row.begin(), row.end(), multipliers.begin() + static_cast<std::ptrdiff_t>(q * width));
  }
}

class AttentionFunction : public Function<AttentionFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key,
                        const Tensor& value, const std::optional<Tensor>& given_prefix_key,
                        const std::optional<Tensor>& given_prefix_value,
                        const std::optional<Tensor>& given_bias, const AttentionShape& shape,
                        const Dropout* dropout) {
    const Tensor prefix_key = given_prefix_key.value_or(Tensor());
    const Tensor prefix_value = given_prefix_value.value_or(Tensor());
    const Tensor bias = given_bias.value_or(Tensor());
    return query.scalar_type() == at::kDouble
               ? forward_of<double>(context, query, key, value, prefix_key, prefix_value, bias,
                                    shape, dropout)
               : forward_of<float>(context, query, key, value, prefix_key, prefix_value, bias,
                                   shape, dropout);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return gradients[0].scalar_type() == at::kDouble
               ? backward_of<double>(context, gradients[0].contiguous())
               : backward_of<float>(context, gradients[0].contiguous());
  }

 private:
  template <typename T>
  static Tensor forward_of(AutogradContext* context, const Tensor& query, const Tensor& key,
                           const Tensor& value, const Tensor& prefix_key,
                           const Tensor& prefix_value, const Tensor& bias,
                           const AttentionShape& shape, const Dropout* dropout) {
    const Tensor q = query.contiguous();
    const Tensor k = key.contiguous();
    const Tensor v = value.contiguous();
    const Tensor pk = prefix_key.defined() ? prefix_key.contiguous() : prefix_key;
    const Tensor pv = prefix_value.defined() ? prefix_value.contiguous() : prefix_value;
    const Tensor b = bias.defined() ? bias.contiguous() : bias;
    Plan plan(shape, pk.defined() ? pk.size(1) : 0);
    const bool dropped = dropout != nullptr && dropout->attention > 0;
    Tensor output = with_zero_filling(q, q.size(1), plan.query_offsets.back());
    Tensor probabilities = at::empty({plan.probabilities.back()}, q.options());
    T* const out = output.mutable_data_ptr<T>();
    T* const kept = probabilities.mutable_data_ptr<T>();
    plan.each_sequence([&](std::size_t s) {
      thread_local std::vector<T> multipliers;
      const SequenceAttention<T> of = plan.sequence<T>(s, q, k, v, pk, pv, b);
      if (dropped) sequence_dropout(*dropout, shape, s, plan.trials[s], of, multipliers);
      attention_forward(of, dropped ? multipliers.data() : nullptr,
                        out + plan.query_offsets[s] * q.size(1), kept + plan.probabilities[s]);
    });
    plan.key_rows = {};
    context->save_for_backward({q, k, v, pk, pv, probabilities, b});
    context->saved_data["plan"] = c10::IValue::make_capsule(c10::make_intrusive<KeptPlan>(plan));
    // Backward must multiply by exactly the factor that forward used.
    context->saved_data["scale"] =
        dropped ? static_cast<double>(dropout_scale(dropout->attention)) : 1.0;
    return output;
  }

  template <typename T>
  static variable_list backward_of(AutogradContext* context, const Tensor& gradient) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& q = saved[0];
    const auto holder = context->saved_data["plan"].toCapsule();
    const Plan& plan = static_cast<const KeptPlan*>(holder.get())->plan;
    const auto scale = static_cast<T>(context->saved_data["scale"].toDouble());
    const std::int64_t d_model = q.size(1);
    const auto sequences = static_cast<std::int64_t>(plan.trials.size());
    Tensor to_query = with_zero_filling(q, d_model, plan.query_offsets.back());
    Tensor to_key = with_zero_filling(saved[1], d_model, plan.key_offsets.back());
    Tensor to_value = with_zero_filling(saved[2], d_model, plan.key_offsets.back());
    // Each sequence writes its own gradient, so that the order of the sum does not depend on
    // threads.
    Tensor to_prefix_key, to_prefix_value;
    if (plan.prefix_length > 0) {
      to_prefix_key = at::empty({sequences, plan.prefix_length, d_model}, q.options());
      to_prefix_value = at::empty_like(to_prefix_key);
    }
    // Autograd does not number absent arguments.
    const bool bias_wanted =
        saved[6].defined() && context->needs_input_grad(plan.prefix_length > 0 ? 5 : 3);
    Tensor to_bias;
    if (bias_wanted) to_bias = at::zeros({sequences, plan.heads, saved[6].size(1)}, q.options());
    const auto part = [](Tensor& of, std::int64_t at) {
      return of.defined() ? of.mutable_data_ptr<T>() + at : nullptr;
    };
    plan.each_sequence([&](std::size_t s) {
      const SequenceAttention<T> of =
          plan.sequence<T>(s, q, saved[1], saved[2], saved[3], saved[4], saved[6]);
      const std::int64_t prefix_at = static_cast<std::int64_t>(s) * plan.prefix_length * d_model;
      const AttentionGradients<T> to{part(to_query, plan.query_offsets[s] * d_model),
                                     part(to_key, plan.key_offsets[s] * d_model),
                                     part(to_value, plan.key_offsets[s] * d_model),
                                     part(to_prefix_key, prefix_at),
                                     part(to_prefix_value, prefix_at),
                                     part(to_bias, static_cast<std::int64_t>(s) * plan.heads *
                                                       (bias_wanted ? saved[6].size(1) : 0))};
      attention_backward(of, gradient.const_data_ptr<T>() + plan.query_offsets[s] * d_model,
                         saved[5].const_data_ptr<T>() + plan.probabilities[s], scale, to);
    });
    if (plan.prefix_length > 0) {
      const Tensor trials = at::tensor(plan.trials, at::kLong);
      const auto by_trial = [&](const Tensor& all) {
        return at::zeros_like(saved[3]).index_add_(0, trials, all);
      };
      to_prefix_key = by_trial(to_prefix_key);
      to_prefix_value = by_trial(to_prefix_value);
    }
    if (bias_wanted) to_bias = to_bias.sum(0);
    return {to_query,        to_key,  to_value, to_prefix_key,
            to_prefix_value, to_bias, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Prefix>& prefix, const AttentionShape& shape,
                 const Dropout* dropout) {
  if (!shape.key_rows.empty() && at::GradMode::is_enabled()) {
    throw std::logic_error("attention to rows by number has no gradient");
  }
  const bool known = query.scalar_type() == at::kFloat || query.scalar_type() == at::kDouble;
  if (!query.device().is_cpu() || !known) {
    std::optional<Tensor> result = fused_attention(query, key, value, prefix, shape, dropout);
    if (result) return *result;
    DeviceKernels* const kernels = kernels_for_attention(shape, query.device());
    if (kernels != nullptr) {
      result = device_attention(*kernels, {query, key, value}, prefix, shape, dropout);
      if (result) return *result;
    }
    return attention_of_operations(query, key, value, prefix, shape, dropout);
  }
  return AttentionFunction::apply(
      query, key, value, prefix ? std::optional(prefix->keys) : std::nullopt,
      prefix ? std::optional(prefix->values) : std::nullopt,
      shape.position_bias.defined() ? std::optional(shape.position_bias) : std::nullopt, shape,
      dropout);
}

Tensor attention(const Tensor& joined, const std::optional<Prefix>& prefix,
                 const AttentionShape& shape, const Dropout* dropout) {
  if (at::GradMode::is_enabled()) {
    if (DeviceKernels* const kernels = kernels_for_attention(shape, joined.device())) {
      const auto result = device_attention(*kernels, {joined}, prefix, shape, dropout);
      if (result) return *result;
    }
  }
  const std::vector<Tensor> parts = joined.chunk(3, 1);
  return attention(parts[0], parts[1], parts[2], prefix, shape, dropout);
}

}  // namespace petlab::trainer
