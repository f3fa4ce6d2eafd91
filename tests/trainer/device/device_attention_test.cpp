// Attention on a device: launches for each class of lengths in training, and LibTorch's kernel for
// packed sequences in evaluation.
#include "tests/support/catch.h"
#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/device/emulated_kernels.h"
#include "tests/trainer/device/tested_device.h"
#include "trainer/backbones/attention.h"
#include "trainer/backbones/attention_buckets.h"
#include "trainer/compute/tensors.h"

using namespace petlab::trainer;
using petlab::testing::check_relative;
using petlab::testing::counted;
using petlab::testing::counts_what_is_tested;
using petlab::testing::device_counts;
using petlab::testing::DeviceCounts;
using petlab::testing::emulated_launches;
using petlab::testing::emulates_kernels;
using petlab::testing::normal_rows;
using petlab::testing::tested_device;

namespace {

PackedSequences of_lengths(const std::vector<std::int64_t>& lengths) {
  PackedSequences sequences;
  for (const std::int64_t length : lengths) {
    sequences.examples.push_back(sequences.sequences());
    sequences.offsets.push_back(sequences.tokens() + length);
  }
  sequences.trial_sequences = {0, sequences.sequences()};
  return sequences;
}

}  // namespace

TEST_CASE("launches of attention on a device depend on the number of length classes",
          "[trainer][device][pretend]") {
  const bool with_dropout = GENERATE(false, true);
  Dropout dropout;
  dropout.attention = with_dropout ? 0.1 : 0;
  dropout.seeds = {3};
  dropout.round_keys = dropout_round_keys(dropout.seeds, 1, tested_device());
  const auto kernels_of = [&](const std::vector<std::int64_t>& lengths) {
    const PackedSequences sequences = of_lengths(lengths);
    const std::int64_t rows = sequences.tokens() + 3;
    const Tensor x = on_device(normal_rows(rows, 16, 1), tested_device()).requires_grad_(true);
    AttentionShape shape{sequences, sequences.offsets, 2};
    const AttentionBuckets buckets = attention_buckets(shape, rows, 1, tested_device());
    shape.buckets = &buckets;
    const DeviceCounts before = device_counts();
    attention(x, x, x, std::nullopt, shape, &dropout).sum().backward();
    const DeviceCounts counts = counted(before, device_counts());
    CHECK(counts.copies_in == 0);
    CHECK(counts.synchronisations == 0);
    CHECK(counts.fused_attentions == 0);
    return counts.kernels;
  };
  const std::int64_t two_lengths = kernels_of({3, 4});
  CHECK(kernels_of({3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) == two_lengths);
  CHECK(kernels_of({3, 4, 17, 19, 30, 31, 32}) <= 2 * two_lengths);
}

TEST_CASE("attention scores of bfloat16 inputs are never rounded to bfloat16",
          "[trainer][device]") {
  const PackedSequences sequences = of_lengths({40, 33, 19});
  const std::int64_t rows = sequences.tokens(), heads = 2, width = heads * 8;
  const auto short_rows = [&](std::uint64_t number, double factor) {
    return (normal_rows(rows, width, number) * factor).to(at::kBFloat16);
  };
  // Scores up to about 30, which bfloat16 would round to multiples of an eighth.
  const Tensor q = short_rows(1, 3), k = short_rows(2, 3), v = short_rows(3, 1);
  AttentionShape shape{sequences, sequences.offsets, heads};
  const Tensor wanted = attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble),
                                  std::nullopt, shape, nullptr);
  const AttentionBuckets buckets = attention_buckets(shape, rows, 1, tested_device());
  shape.buckets = &buckets;
  const auto check = [&](const char* name, const Dropout* dropout) {
    const auto there = [](const Tensor& x) {
      return on_device(x, tested_device()).requires_grad_(at::GradMode::is_enabled());
    };
    const Tensor found = attention(there(q), there(k), there(v), std::nullopt, shape, dropout);
    CHECK(found.scalar_type() == at::kBFloat16);
    check_relative(name, found.detach().to(at::kCPU).to(at::kDouble), wanted, 6e-3);
  };
  Dropout dropout;
  dropout.attention = 1e-9;  // drops nothing here
  dropout.seeds = {3};
  dropout.round_keys = dropout_round_keys(dropout.seeds, 1, tested_device());
  check("training", &dropout);
  check("training without dropout", nullptr);
  const at::NoGradGuard no_grad;
  check("evaluation", nullptr);
}

TEST_CASE("evaluation uses the device's kernel for packed sequences", "[trainer][device]") {
  const bool cross = GENERATE(false, true);
  const bool scaled = GENERATE(false, true);
  const std::int64_t heads = 2, width = heads * 8, filling = 2;
  const PackedSequences keys = of_lengths({1, 4, 4, 19, 33});
  const PackedSequences others = of_lengths({3, 1, 5, 20, 2});
  const PackedSequences& queries = cross ? others : keys;
  const std::int64_t rows = queries.tokens() + filling;
  const Tensor q = normal_rows(rows, width, 1);
  const Tensor k = normal_rows(keys.tokens() + 1, width, 2);
  const Tensor v = normal_rows(keys.tokens() + 1, width, 3);
  AttentionShape shape{keys, queries.offsets, heads};
  shape.scaled = scaled;
  const at::NoGradGuard no_grad;
  const Tensor wanted = attention(q, k, v, std::nullopt, shape, nullptr);
  const AttentionBuckets buckets = attention_buckets(shape, rows, 1, tested_device());
  shape.buckets = &buckets;
  const auto there = [](const Tensor& x) { return on_device(x, tested_device()); };

  DeviceCounts before = device_counts();
  const Tensor fused = attention(there(q), there(k), there(v), std::nullopt, shape, nullptr);
  if (counts_what_is_tested()) {
    CHECK(counted(before, device_counts()).fused_attentions == 1);
  }
  check_relative("the kernel", fused.to(at::kCPU), wanted, 1e-6);
  const Tensor separate =
      attention_of_operations(there(q), there(k), there(v), std::nullopt, shape, nullptr);
  check_relative("operations", separate.to(at::kCPU), wanted, 1e-6);
  CHECK(separate.narrow(0, queries.tokens(), filling).to(at::kCPU).eq(0).all().item<bool>());

  // Separate operations compute what the kernel does not support.
  before = device_counts();
  const auto attend = [&](AttentionShape of, const std::optional<Prefix>& prefix,
                          at::ScalarType type) {
    const AttentionBuckets buckets_of = attention_buckets(of, rows, 1, tested_device());
    of.buckets = &buckets_of;
    attention(there(q.to(type)), there(k.to(type)), there(v.to(type)), prefix, of, nullptr);
  };
  const auto prefix_of = [&](at::ScalarType type) {
    return Prefix{there(normal_rows(3, width, 4).to(type).unsqueeze(0)),
                  there(normal_rows(3, width, 5).to(type).unsqueeze(0))};
  };
  attend(shape, prefix_of(at::kFloat), at::kFloat);
  attend(shape, std::nullopt, at::kDouble);
  AttentionShape with_bias = shape;
  with_bias.position_bias = there(normal_rows(heads, 2 * 33 - 1, 6));
  attend(with_bias, std::nullopt, at::kFloat);
  AttentionShape narrow = shape;
  narrow.num_heads = 8;  // d_head is 2, less than the kernel loads at a time
  attend(narrow, std::nullopt, at::kFloat);
  {
    const at::AutoGradMode with_gradients(true);
    attend(shape, std::nullopt, at::kFloat);
  }
  CHECK(counted(before, device_counts()).fused_attentions == 0);
}

TEST_CASE("attention on a device gives the CPU's outputs and gradients", "[trainer][device]") {
  const std::int64_t heads = 2, d_head = GENERATE(6, 40), width = heads * d_head, prefix = 3;
  const bool causal = GENERATE(false, true), biased = GENERATE(false, true);
  const bool prefixed = GENERATE(false, true), dropped = GENERATE(false, true);
  INFO("heads of " << d_head << (causal ? ", causal" : "") << (biased ? ", bias" : "")
                   << (prefixed ? ", prefix" : "") << (dropped ? ", dropout" : ""));
  // Two trials, with lengths of 0 and around 16 and 32, the numbers of rows that a block computes
  // at a time.
  PackedSequences sequences = of_lengths({1, 2, 15, 16, 17, 31, 0, 33, 70});
  sequences.trial_sequences = {0, 4, sequences.sequences()};
  const std::int64_t rows = sequences.tokens() + 2;
  AttentionShape shape{sequences, sequences.offsets, heads, /*layer=*/1};
  shape.causal = causal;
  Dropout dropout;
  dropout.attention = 0.3;
  dropout.step = 5;
  dropout.seeds = {3, 4};
  const auto run = [&](at::Device device) {
    const auto there = [&](std::int64_t of_rows, std::uint64_t number) {
      return on_device(normal_rows(of_rows, width, number).to(at::kDouble), device);
    };
    AttentionShape device_shape = shape;
    if (biased) {
      device_shape.position_bias =
          on_device(normal_rows(heads, 2 * 70 - 1, 6).to(at::kDouble), device);
    }
    Dropout of = dropout;
    std::optional<AttentionBuckets> buckets;
    if (!device.is_cpu()) {
      of.round_keys = dropout_round_keys(of.seeds, 2, device);
      device_shape.buckets = &buckets.emplace(attention_buckets(device_shape, rows, 1, device));
    }
    std::vector<Tensor> inputs{there(rows, 1), there(rows, 2), there(rows, 3)};
    std::optional<Prefix> before;
    if (prefixed) {
      inputs.push_back(there(2 * prefix, 4).view({2, prefix, width}));
      inputs.push_back(there(2 * prefix, 5).view({2, prefix, width}));
    }
    for (Tensor& input : inputs) input.requires_grad_(true);
    if (prefixed) before = Prefix{inputs[3], inputs[4]};
    const Tensor output =
        attention(inputs[0], inputs[1], inputs[2], before, device_shape, dropped ? &of : nullptr);
    (output * there(rows, 7)).sum().backward();
    std::vector<Tensor> all{output.detach()};
    for (const Tensor& input : inputs) all.push_back(input.grad());
    return all;
  };
  // Runs on the device first because LibTorch checks only once whether it has CUDA.
  const std::int64_t before = emulated_launches();
  const std::vector<Tensor> found = run(tested_device());
  CHECK(emulated_launches() - before == (emulates_kernels() ? 3 : 0));
  const std::vector<Tensor> wanted = run(at::kCPU);
  const char* const names[] = {"output", "query", "key", "value", "prefix keys", "prefix values"};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check_relative(names[i], found[i].to(at::kCPU), wanted[i], 1e-10);
  }
}
