#include <cmath>
#include <limits>

#include "trainer/backbones/attention.h"
#include "trainer/backbones/attention_buckets.h"

namespace petlab::trainer {
namespace {

/// The attention of a bucket's sequences to a prefix and their own keys.
class BucketAttention {
 public:
  BucketAttention(const AttentionBucket& bucket, const AttentionShape& shape,
                  const std::optional<Prefix>& prefix)
      : bucket_(bucket), shape_(shape), prefix_(prefix ? prefix->keys.size(1) : 0) {}

  /// query, key and value are (sequences, heads, queries or prefix and keys, d_head). Returns the
  /// shape of query.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Dropout* dropout) const {
    const double scale = shape_.scaled ? 1.0 / std::sqrt(static_cast<double>(query.size(3))) : 1.0;
    const Tensor bias = behind_prefix(bucket_.bias);
    const Tensor hidden = bias.defined() ? Tensor() : behind_prefix(bucket_.hidden);
    if (dropout == nullptr || dropout->attention <= 0) {
      // LibTorch chooses the device's fastest kernel.
      std::optional<Tensor> mask;
      if (bias.defined()) mask = bias;
      if (hidden.defined()) mask = hidden.logical_not();
      return at::scaled_dot_product_attention(query, key, value, mask, 0.0, false, scale);
    }
    // As in the fused kernels for evaluation, scores are not rounded before the exponential.
    const at::ScalarType type = query.scalar_type();
    const at::ScalarType of_scores = type == at::kDouble ? at::kDouble : at::kFloat;
    Tensor scores = at::matmul(query.to(of_scores) * scale, key.to(of_scores).transpose(2, 3));
    if (bias.defined()) scores = scores + bias;
    if (hidden.defined()) {
      scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    }
    const Tensor probabilities = at::softmax(scores, -1);
    const Tensor dropped = drop_by(probabilities, kept(*dropout), dropout->attention);
    return at::matmul(dropped.to(type), value);
  }

 private:
  /// Extends a tensor over the keys by zeros (or false) for the prefix, which all queries see.
  Tensor behind_prefix(const Tensor& of_keys) const {
    if (!of_keys.defined() || prefix_ == 0) return of_keys;
    return at::constant_pad_nd(of_keys, {prefix_, 0});
  }

  /// Which probabilities dropout keeps: (sequences, heads, queries, prefix and keys).
  Tensor kept(const Dropout& dropout) const {
    const std::int64_t heads = shape_.num_heads;
    const std::int64_t keys = prefix_ + bucket_.keys;
    Tensor drawn = bucket_.draws->kept(dropout, {shape_.dropout, shape_.layer}, dropout.attention,
                                       heads * keys);  // (sequences, queries, heads · keys)
    if (bucket_.keys_padded) {
      // A row's random numbers are numbered by its keys, head by head, without padding.
      const auto counted = bucket_.lengths.options();
      const Tensor begin = at::arange(heads, counted).view({1, heads, 1}) *
                           (bucket_.lengths + prefix_).view({-1, 1, 1});
      const Tensor places = (begin + at::arange(keys, counted))
                                .view({bucket_.sequences, 1, heads * keys})
                                .expand_as(drawn);
      drawn = drawn.gather(2, places);
    }
    return drawn.view({bucket_.sequences, bucket_.queries, heads, keys}).transpose(1, 2);
  }

  const AttentionBucket& bucket_;
  const AttentionShape& shape_;
  std::int64_t prefix_;
};

}  // namespace

Tensor attention_of_operations(const Tensor& query, const Tensor& key, const Tensor& value,
                               const std::optional<Prefix>& prefix, const AttentionShape& shape,
                               const Dropout* dropout) {
  if (shape.buckets == nullptr || shape.buckets->all.empty()) {
    const AttentionBuckets buckets =
        attention_buckets(shape, query.size(0), 1, query.device(), /*for_kernels=*/false);
    AttentionShape with_buckets = shape;
    with_buckets.buckets = &buckets;
    return attention_of_operations(query, key, value, prefix, with_buckets, dropout);
  }
  const std::int64_t heads = shape.num_heads;
  const std::int64_t width = query.size(1);
  std::vector<Tensor> parts;
  for (const AttentionBucket& bucket : shape.buckets->all) {
    const auto by_heads = [&](const Tensor& rows) {
      return rows.view({bucket.sequences, -1, heads, width / heads}).transpose(1, 2);
    };
    const auto seen = [&](const Tensor& tokens, const Tensor* before) {
      const Tensor rows =
          tokens.index_select(0, bucket.key_rows).view({bucket.sequences, bucket.keys, width});
      if (before == nullptr) return by_heads(rows);
      // With a single trial, expanding needs no index, and its gradient is not summed row by row.
      const Tensor prefixes = before->size(0) == 1
                                  ? before->expand({bucket.sequences, before->size(1), width})
                                  : before->index_select(0, bucket.trials);
      return by_heads(at::cat({prefixes, rows}, 1));
    };
    const Tensor output = BucketAttention(bucket, shape, prefix)(
        by_heads(query.index_select(0, bucket.query_rows)),
        seen(key, prefix ? &prefix->keys : nullptr),
        seen(value, prefix ? &prefix->values : nullptr), dropout);
    parts.push_back(output.transpose(1, 2).reshape({-1, width}));
  }
  parts.push_back(at::zeros({1, width}, query.options()));
  return at::cat(parts, 0).index_select(0, shape.buckets->output_rows);
}

}  // namespace petlab::trainer
