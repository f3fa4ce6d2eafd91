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

  /// query, key, value: (sequences, heads, queries or prefix and keys, d_head). As query.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Dropout* dropout) const {
    const double scale = shape_.scaled ? 1.0 / std::sqrt(static_cast<double>(query.size(3))) : 1.0;
    const Tensor hidden = hidden_keys(query.device());
    const Tensor bias = bias_of_distances();
    if (dropout == nullptr || dropout->attention <= 0) {
      // LibTorch takes the fastest kernel that the device has for it.
      std::optional<Tensor> mask;
      if (bias.defined()) {
        mask = hidden.defined() ? bias.masked_fill(hidden, kNever) : bias;
      } else if (hidden.defined()) {
        mask = hidden.logical_not();
      }
      return at::scaled_dot_product_attention(query, key, value, mask, 0.0, false, scale);
    }
    Tensor scores = at::matmul(query * scale, key.transpose(2, 3));
    if (bias.defined()) scores = scores + bias;
    if (hidden.defined()) scores = scores.masked_fill(hidden, kNever);
    const Tensor probabilities = at::softmax(scores, -1);
    return at::matmul(drop_by(probabilities, kept(*dropout), dropout->attention), value);
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  /// (queries, keys): key's minus query's position.
  Tensor distances(const at::TensorOptions& counted) const {
    return at::arange(bucket_.keys, counted).unsqueeze(0) -
           at::arange(bucket_.queries, counted).unsqueeze(1);
  }

  /// Whether a query does not see a key, of a shape that broadcasts to the scores'; undefined where
  /// all see all.
  Tensor hidden_keys(at::Device device) const {
    const auto counted = at::TensorOptions().dtype(at::kLong).device(device);
    Tensor hidden;
    if (bucket_.keys_padded) {
      hidden = at::arange(bucket_.keys, counted) >= bucket_.lengths.view({-1, 1, 1, 1});
    }
    if (shape_.causal) {
      const Tensor behind = (distances(counted) > 0).unsqueeze(0).unsqueeze(0);
      hidden = hidden.defined() ? hidden.logical_or(behind) : behind;
    }
    return hidden.defined() && prefix_ > 0 ? at::constant_pad_nd(hidden, {prefix_, 0}, false)
                                           : hidden;
  }

  /// (1, heads, queries, prefix and keys)
  Tensor bias_of_distances() const {
    const Tensor& all = shape_.position_bias;
    if (!all.defined()) return {};
    const std::int64_t longest = (all.size(1) + 1) / 2;
    const Tensor columns = distances(all.options().dtype(at::kLong)) + (longest - 1);
    const Tensor bias = all.index_select(1, columns.flatten())
                            .view({1, shape_.num_heads, bucket_.queries, bucket_.keys});
    return prefix_ > 0 ? at::constant_pad_nd(bias, {prefix_, 0}) : bias;
  }

  /// Which probabilities dropout keeps: (sequences, heads, queries, prefix and keys).
  Tensor kept(const Dropout& dropout) const {
    const std::int64_t heads = shape_.num_heads;
    const std::int64_t keys = prefix_ + bucket_.keys;
    Tensor drawn = bucket_.draws->kept(dropout, {shape_.dropout, shape_.layer}, dropout.attention,
                                       heads * keys);  // (sequences, queries, heads · keys)
    if (bucket_.keys_padded) {
      // The numbers of a row are those of its own keys, head by head, without padding.
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
  if (shape.buckets == nullptr) {
    const AttentionBuckets made = attention_buckets(shape, query.size(0), 1, query.device());
    AttentionShape with_buckets = shape;
    with_buckets.buckets = &made;
    return attention_of_operations(query, key, value, prefix, with_buckets, dropout);
  }
  const std::int64_t heads = shape.num_heads;
  const std::int64_t width = query.size(1);
  std::vector<Tensor> parts;
  for (const AttentionBucket& bucket : shape.buckets->all) {
    const auto by_heads = [&](const Tensor& rows) {
      return rows.view({bucket.sequences, -1, heads, width / heads}).transpose(1, 2);
    };
    const auto seen = [&](const Tensor& own, const Tensor* before) {
      const Tensor rows =
          own.index_select(0, bucket.key_rows).view({bucket.sequences, bucket.keys, width});
      if (before == nullptr) return by_heads(rows);
      // Of one trial it need not be found, nor its gradient added up row by row.
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
