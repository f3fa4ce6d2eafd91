#include "trainer/backbones/fused_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>

#include "trainer/backbones/attention_buckets.h"

namespace petlab::trainer {
namespace {

/// The kernel loads this many bytes at a time.
constexpr std::int64_t kLoaded = 16;

/// Whether the device implements the kernel itself, rather than dispatching to something else.
bool has_kernel(const Tensor& query) {
  static const auto found =
      c10::Dispatcher::singleton().findSchema({"aten::_efficient_attention_forward", ""});
  return found && found->hasKernelForDispatchKey(query.options().computeDispatchKey());
}

}  // namespace

std::optional<Tensor> fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const std::optional<Prefix>& prefix,
                                      const AttentionShape& shape, const Dropout* dropout) {
  const std::int64_t d_head = query.size(1) / shape.num_heads;
  if (at::GradMode::is_enabled() || (dropout != nullptr && dropout->attention > 0) || prefix ||
      shape.causal || shape.window >= 0 || shape.position_bias.defined() ||
      !shape.key_rows.empty() || shape.buckets == nullptr || query.scalar_type() == at::kDouble ||
      d_head * query.element_size() % kLoaded != 0 || !has_kernel(query)) {
    return std::nullopt;
  }
  const auto packed = [&](const Tensor& rows, std::int64_t tokens) {
    return rows.narrow(0, 0, tokens).view({1, tokens, shape.num_heads, d_head});
  };
  const std::int64_t queries = shape.query_offsets.back();
  const std::int64_t keys = shape.keys.tokens();
  const Tensor output = std::get<0>(at::_efficient_attention_forward(
      packed(query, queries), packed(key, keys), packed(value, keys), /*bias=*/std::nullopt,
      shape.buckets->query_starts, shape.buckets->key_starts, shape.buckets->most_queries,
      shape.buckets->most_keys, /*dropout_p=*/0.0, /*custom_mask_type=*/0,
      /*compute_log_sumexp=*/false,
      shape.scaled ? 1.0 / std::sqrt(static_cast<double>(d_head)) : 1.0));
  // Rows after the last sequence belong to none and become 0.
  return at::constant_pad_nd(output.reshape({queries, query.size(1)}),
                             {0, 0, 0, query.size(0) - queries});
}

}  // namespace petlab::trainer
