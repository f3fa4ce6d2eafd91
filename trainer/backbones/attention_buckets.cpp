#include "trainer/backbones/attention_buckets.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "trainer/backbones/device_attention.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

/// Sequences up to this length share a class: padding them costs less than another launch.
constexpr std::uint64_t kShort = 16;

std::uint64_t length_class(std::int64_t length) {
  return std::bit_ceil(std::max(kShort, static_cast<std::uint64_t>(length)));
}

/// Lengths and offsets of a shape's sequences.
struct Lengths {
  const AttentionShape& shape;
  std::int64_t queries(std::size_t s) const {
    return shape.query_offsets[s + 1] - shape.query_offsets[s];
  }
  std::int64_t keys(std::size_t s) const {
    return shape.keys.offsets[s + 1] - shape.keys.offsets[s];
  }
  std::int64_t key_row(std::int64_t place) const {
    return shape.key_rows.empty() ? place : shape.key_rows[static_cast<std::size_t>(place)];
  }
};

/// Collects numbers on the host and copies them to the device in a single transfer.
class OneCopy {
 public:
  /// The index of the next number.
  std::int64_t begin() const { return static_cast<std::int64_t>(numbers_.size()); }
  void add(std::int64_t number) { numbers_.push_back(number); }
  void copy_to(at::Device device) { copied_ = on_device(at::tensor(numbers_, at::kLong), device); }
  /// A part of the copied numbers. Call copy_to first.
  Tensor part(std::int64_t begin, std::int64_t size) const {
    return copied_.narrow(0, begin, size);
  }

 private:
  std::vector<std::int64_t> numbers_;
  Tensor copied_;
};

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// Sets the mask of hidden keys and the bias of the scores.
void add_masks(AttentionBucket& bucket, const AttentionShape& shape) {
  const auto counted = bucket.lengths.options();
  const Tensor places = at::arange(bucket.keys, counted);
  if (bucket.keys_padded) bucket.hidden = places >= bucket.lengths.view({-1, 1, 1, 1});
  if (!shape.causal && shape.window < 0 && !shape.position_bias.defined()) return;
  const Tensor query_places = at::arange(bucket.queries, counted).unsqueeze(1);
  // (queries, keys): the key's position minus the query's.
  const Tensor distances = places.unsqueeze(0) - query_places;
  const auto hide = [&](const Tensor& keys) {
    bucket.hidden = bucket.hidden.defined() ? bucket.hidden.logical_or(keys) : keys;
  };
  if (shape.causal) hide((distances > 0).unsqueeze(0).unsqueeze(0));
  if (shape.window >= 0) {
    // A padding query's window may contain no token, and its softmax would be NaN.
    const Tensor is_query = query_places < bucket.lengths.view({-1, 1, 1, 1});
    hide((distances.abs() > shape.window).logical_and(is_query));
  }
  if (!shape.position_bias.defined()) return;
  const std::int64_t longest = (shape.position_bias.size(1) + 1) / 2;
  bucket.bias = shape.position_bias.index_select(1, (distances + (longest - 1)).flatten())
                    .view({1, shape.num_heads, bucket.queries, bucket.keys});
  if (bucket.hidden.defined()) bucket.bias = bucket.bias.masked_fill(bucket.hidden, kHidden);
}

}  // namespace

AttentionBuckets attention_buckets(const AttentionShape& shape, std::int64_t rows,
                                   std::int64_t layers, at::Device device, bool for_kernels) {
  const Lengths of{shape};
  const auto sequences = static_cast<std::size_t>(shape.keys.sequences());
  std::vector<std::int64_t> trials;
  for (std::size_t k = 0; k + 1 < shape.keys.trial_sequences.size(); ++k) {
    trials.resize(static_cast<std::size_t>(shape.keys.trial_sequences[k + 1]),
                  static_cast<std::int64_t>(k));
  }
  const bool packed = for_kernels && kernels_for_attention(shape, device) != nullptr;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>> classes;
  AttentionBuckets result;
  for (std::size_t s = 0; s < sequences; ++s) {
    result.most_queries = std::max(result.most_queries, of.queries(s));
    result.most_keys = std::max(result.most_keys, of.keys(s));
    if (packed || of.queries(s) == 0) continue;
    classes[{length_class(of.keys(s)), length_class(of.queries(s))}].push_back(s);
  }

  DrawnPlaces places;
  for (std::int64_t l = 0; l < layers; ++l) places.push_back({shape.dropout, shape.layer + l});
  OneCopy copy;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> output_rows(static_cast<std::size_t>(rows), -1);
  std::int64_t padded_rows = 0;
  for (const auto& [lengths, members] : classes) {
    AttentionBucket bucket;
    bucket.sequences = static_cast<std::int64_t>(members.size());
    for (const std::size_t s : members) {
      bucket.queries = std::max(bucket.queries, of.queries(s));
      bucket.keys = std::max(bucket.keys, of.keys(s));
    }
    begins.push_back(copy.begin());
    for (const std::size_t s : members) {
      for (std::int64_t q = 0; q < bucket.queries; ++q) {
        const std::int64_t first = shape.query_offsets[s];
        copy.add(first + (q < of.queries(s) ? q : 0));
        if (q < of.queries(s)) output_rows[static_cast<std::size_t>(first + q)] = padded_rows;
        ++padded_rows;
      }
    }
    for (const std::size_t s : members) {
      for (std::int64_t k = 0; k < bucket.keys; ++k) {
        copy.add(of.key_row(shape.keys.offsets[s] + (k < of.keys(s) ? k : 0)));
      }
      bucket.keys_padded = bucket.keys_padded || of.keys(s) < bucket.keys;
    }
    for (const std::size_t s : members) copy.add(of.keys(s));
    for (const std::size_t s : members) copy.add(trials[s]);
    for (const std::size_t s : members) copy.add(shape.keys.examples[s]);
    result.all.push_back(std::move(bucket));
  }
  const std::int64_t outputs = copy.begin();
  for (const std::int64_t row : output_rows) copy.add(row < 0 ? padded_rows : row);
  const std::int64_t owners = copy.begin();
  for (const std::int64_t trial : trials) copy.add(trial);
  for (const std::int64_t example : shape.keys.examples) copy.add(example);
  const std::int64_t starts = copy.begin();
  for (const std::int64_t offset : shape.query_offsets) copy.add(offset);
  for (const std::int64_t offset : shape.keys.offsets) copy.add(offset);

  copy.copy_to(device);
  for (std::size_t b = 0; b < result.all.size(); ++b) {
    AttentionBucket& bucket = result.all[b];
    std::int64_t at = begins[b];
    const auto next = [&](std::int64_t size) {
      at += size;
      return copy.part(at - size, size);
    };
    bucket.query_rows = next(bucket.sequences * bucket.queries);
    bucket.key_rows = next(bucket.sequences * bucket.keys);
    bucket.lengths = next(bucket.sequences);
    bucket.trials = next(bucket.sequences);
    const Tensor examples = next(bucket.sequences);
    add_masks(bucket, shape);
    bucket.draws =
        std::make_shared<DropoutDraws>(bucket.trials.unsqueeze(1), examples.unsqueeze(1),
                                       at::arange(bucket.queries, examples.options()).unsqueeze(0),
                                       std::vector<DrawnPlaces>{places});
  }
  result.output_rows = copy.part(outputs, rows);
  result.trials = copy.part(owners, static_cast<std::int64_t>(sequences));
  result.examples = copy.part(owners + result.trials.size(0), result.trials.size(0));
  const auto each = static_cast<std::int64_t>(sequences) + 1;
  const Tensor both = copy.part(starts, 2 * each).to(at::kInt);
  result.query_starts = both.narrow(0, 0, each);
  result.key_starts = both.narrow(0, each, each);
  return result;
}

}  // namespace petlab::trainer
