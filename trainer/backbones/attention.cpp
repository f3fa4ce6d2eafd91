#include "trainer/backbones/attention.h"

#include <cmath>

namespace petlab::trainer {
namespace {

/// Multipliers of attention dropout for the sequences [from, to), which are equally long:
/// (sequences, heads, queries, keys).
Tensor probability_dropout(const Dropout& dropout, const AttentionShape& shape, std::int64_t from,
                           std::int64_t to, std::int64_t trial, std::int64_t queries,
                           std::int64_t keys, at::ScalarType dtype) {
  std::vector<RowKey> rows;
  rows.reserve(static_cast<std::size_t>((to - from) * queries));
  for (std::int64_t s = from; s < to; ++s) {
    for (std::int64_t q = 0; q < queries; ++q) {
      rows.push_back({trial, shape.examples[static_cast<std::size_t>(s)], q});
    }
  }
  return dropout_multipliers(dropout, dropout.attention, Purpose::attention_dropout, shape.layer,
                             rows, shape.num_heads * keys, dtype)
      .view({to - from, queries, shape.num_heads, keys})
      .transpose(1, 2);
}

}  // namespace

Tensor attention_of_operations(const Tensor& query, const Tensor& key, const Tensor& value,
                               const std::optional<Prefix>& prefix, const AttentionShape& shape,
                               const Dropout* dropout) {
  const std::int64_t heads = shape.num_heads;
  const std::int64_t d_head = query.size(1) / heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d_head));
  const auto split = [&](const Tensor& rows, std::int64_t sequences) {
    return rows.view({sequences, -1, heads, d_head}).transpose(1, 2);
  };
  std::vector<Tensor> parts;
  for (std::size_t trial = 0; trial + 1 < shape.trial_sequences.size(); ++trial) {
    std::int64_t from = shape.trial_sequences[trial];
    const std::int64_t end = shape.trial_sequences[trial + 1];
    while (from < end) {
      const auto at = [](std::span<const std::int64_t> offsets, std::int64_t s) {
        return offsets[static_cast<std::size_t>(s)];
      };
      const auto keys_of = [&](std::int64_t s) {
        return at(shape.key_offsets, s + 1) - at(shape.key_offsets, s);
      };
      const auto queries_of = [&](std::int64_t s) {
        return at(shape.query_offsets, s + 1) - at(shape.query_offsets, s);
      };
      std::int64_t to = from + 1;
      while (to < end && keys_of(to) == keys_of(from) && queries_of(to) == queries_of(from)) ++to;
      const std::int64_t n = to - from;
      const Tensor q =
          split(query.narrow(0, at(shape.query_offsets, from), n * queries_of(from)), n);
      Tensor k = split(key.narrow(0, at(shape.key_offsets, from), n * keys_of(from)), n);
      Tensor v = split(value.narrow(0, at(shape.key_offsets, from), n * keys_of(from)), n);
      if (prefix) {
        const auto repeated = [&](const Tensor& all) {
          const Tensor own = all.select(0, static_cast<std::int64_t>(trial));
          return split(own, 1).expand({n, heads, own.size(0), d_head});
        };
        k = at::cat({repeated(prefix->keys), k}, 2);
        v = at::cat({repeated(prefix->values), v}, 2);
      }
      Tensor probabilities = at::softmax(at::matmul(q * scale, k.transpose(2, 3)), -1);
      if (dropout != nullptr && dropout->attention > 0) {
        probabilities =
            probabilities * probability_dropout(*dropout, shape, from, to,
                                                static_cast<std::int64_t>(trial), queries_of(from),
                                                k.size(2), query.scalar_type());
      }
      parts.push_back(at::matmul(probabilities, v).transpose(1, 2).reshape({-1, query.size(1)}));
      from = to;
    }
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Prefix>& prefix, const AttentionShape& shape,
                 const Dropout* dropout) {
  return attention_of_operations(query, key, value, prefix, shape, dropout);
}

}  // namespace petlab::trainer
