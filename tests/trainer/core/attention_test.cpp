#include "trainer/backbones/attention.h"

#include <cmath>
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/trainer/core/golden_tensors.h"
#include "trainer/compute/operations.h"

using namespace petlab::trainer;
using petlab::testing::check_relative;

namespace {

Tensor random_tensor(std::vector<std::int64_t> shape, std::uint64_t number, at::ScalarType dtype) {
  Tensor tensor = at::empty(shape, at::kFloat);
  fill_normal(7, number, 1.0,
              {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
  return tensor.to(dtype).requires_grad_(true);
}

/// Calls `of` and returns its output, then the inputs' gradients for a fixed output gradient.
template <typename Function>
std::vector<Tensor> differentiate(const std::vector<Tensor>& inputs, Function of) {
  for (const Tensor& input : inputs) input.mutable_grad() = Tensor();
  const Tensor output = of();
  const Tensor gradient = random_tensor(output.sizes().vec(), 9, output.scalar_type()).detach();
  output.backward(gradient);
  std::vector<Tensor> all{output.detach()};
  for (const Tensor& input : inputs) all.push_back(input.grad().clone());
  return all;
}

void compare_attention(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                       double tolerance) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    check_relative("tensor " + std::to_string(i), found[i], wanted[i], tolerance);
  }
}

}  // namespace

TEST_CASE("the attention kernel matches LibTorch's operations", "[trainer]") {
  const bool first_tokens = GENERATE(false, true);
  const std::int64_t window = GENERATE(-1, 1, 6);
  const bool with_prefix = GENERATE(false, true);
  const bool with_dropout = GENERATE(false, true);
  const at::ScalarType dtype = GENERATE(at::kFloat, at::kDouble);
  const std::int64_t heads = GENERATE(1, 3);
  const std::int64_t d_head = GENERATE(12, 32);
  PackedSequences sequences;
  sequences.offsets = {0, 1, 4, 4 + 17, 4 + 17 + 33};
  sequences.examples = {5, 0, 9, 3};
  sequences.trial_sequences = {0, 2, 4};
  const std::vector<std::int64_t>& keys = sequences.offsets;
  const std::vector<std::int64_t> firsts{0, 1, 2, 3, 4};
  const std::int64_t d_model = heads * d_head;
  const std::int64_t filling = 2;  // rows that belong to no sequence
  const std::vector<std::int64_t>& queries = first_tokens ? firsts : keys;
  const Tensor q = random_tensor({queries.back() + filling, d_model}, 1, dtype);
  const Tensor k = random_tensor({keys.back() + filling, d_model}, 2, dtype);
  const Tensor v = random_tensor({keys.back() + filling, d_model}, 3, dtype);
  const Tensor pk = random_tensor({2, 5, d_model}, 4, dtype);
  const Tensor pv = random_tensor({2, 5, d_model}, 5, dtype);
  const std::optional<Prefix> prefix = with_prefix ? std::optional<Prefix>({pk, pv}) : std::nullopt;
  AttentionShape shape{sequences, queries, heads, 2};
  shape.window = window;
  Dropout dropout;
  dropout.attention = 0.3;
  dropout.step = 11;
  dropout.seeds = {1, 2};
  const Dropout* const used = with_dropout ? &dropout : nullptr;
  std::vector<Tensor> inputs{q, k, v};
  if (with_prefix) inputs.insert(inputs.end(), {pk, pv});
  compare_attention(
      differentiate(inputs, [&] { return attention(q, k, v, prefix, shape, used); }),
      differentiate(inputs, [&] { return attention_of_operations(q, k, v, prefix, shape, used); }),
      dtype == at::kDouble ? 1e-12 : 1e-5);
}

TEST_CASE("causal, cross and unscaled attention with a position bias match LibTorch's operations",
          "[trainer]") {
  enum class Kind { both_ways, causal, cross };
  const Kind kind = GENERATE(Kind::both_ways, Kind::causal, Kind::cross);
  const bool with_bias = GENERATE(false, true);
  const bool with_prefix = GENERATE(false, true);
  const bool with_dropout = GENERATE(false, true);
  const at::ScalarType dtype = GENERATE(at::kFloat, at::kDouble);
  if (with_bias && kind == Kind::cross) return;
  PackedSequences sources;
  sources.offsets = {0, 5, 8, 8 + 19};
  sources.examples = {5, 0, 9};
  sources.trial_sequences = {0, 1, 3};
  PackedSequences targets = sources;
  targets.offsets = {0, 3, 4, 4 + 17};
  const PackedSequences& queries = kind == Kind::cross ? targets : sources;
  const std::int64_t heads = 3;
  const std::int64_t width = heads * 10;
  const std::int64_t longest = 21;
  const Tensor q = random_tensor({queries.tokens() + 1, width}, 1, dtype);
  const Tensor k = random_tensor({sources.tokens() + 2, width}, 2, dtype);
  const Tensor v = random_tensor({sources.tokens() + 2, width}, 3, dtype);
  const Tensor pk = random_tensor({2, 4, width}, 4, dtype);
  const Tensor pv = random_tensor({2, 4, width}, 5, dtype);
  const Tensor bias = random_tensor({heads, 2 * longest - 1}, 6, dtype);
  AttentionShape shape{sources, queries.offsets, heads, 2};
  shape.scaled = kind == Kind::cross;
  shape.causal = kind == Kind::causal;
  if (with_bias) shape.position_bias = bias;
  shape.dropout = Purpose::cross_attention_dropout;
  const std::optional<Prefix> prefix = with_prefix ? std::optional<Prefix>({pk, pv}) : std::nullopt;
  Dropout dropout;
  dropout.attention = 0.3;
  dropout.step = 11;
  dropout.seeds = {1, 2};
  const Dropout* const used = with_dropout ? &dropout : nullptr;
  std::vector<Tensor> inputs{q, k, v};
  if (with_prefix) inputs.insert(inputs.end(), {pk, pv});
  if (with_bias) inputs.push_back(bias);
  compare_attention(
      differentiate(inputs, [&] { return attention(q, k, v, prefix, shape, used); }),
      differentiate(inputs, [&] { return attention_of_operations(q, k, v, prefix, shape, used); }),
      dtype == at::kDouble ? 1e-12 : 2e-5);
}

TEST_CASE("attention reads keys and values by row number", "[trainer]") {
  const bool with_prefix = GENERATE(false, true);
  const at::ScalarType dtype = GENERATE(at::kFloat, at::kDouble);
  const at::NoGradGuard no_grad;
  PackedSequences texts;  // three; the first two share their first rows
  texts.offsets = {0, 4, 8, 12};
  texts.examples = {0, 1, 2};
  texts.trial_sequences = {0, 3};
  const std::vector<std::int64_t> queries{0, 1, 2, 3};
  const std::vector<std::int64_t> rows{7, 2, 5, 0, 7, 2, 3, 1, 4, 9, 8, 6};
  const std::int64_t heads = 3, width = heads * 10;
  const Tensor q = random_tensor({3, width}, 1, dtype);
  const Tensor k = random_tensor({10, width}, 2, dtype);
  const Tensor v = random_tensor({10, width}, 3, dtype);
  const std::optional<Prefix> prefix =
      with_prefix ? std::optional<Prefix>({random_tensor({1, 5, width}, 4, dtype),
                                           random_tensor({1, 5, width}, 5, dtype)})
                  : std::nullopt;
  AttentionShape shape{texts, queries, heads};
  shape.position_bias = random_tensor({heads, 7}, 6, dtype);
  const Tensor numbers = at::tensor(rows, at::kLong);
  const Tensor wanted =
      attention(q, k.index_select(0, numbers), v.index_select(0, numbers), prefix, shape, nullptr);
  shape.key_rows = rows;
  CHECK(at::equal(attention(q, k, v, prefix, shape, nullptr), wanted));
  check_relative("operations", attention_of_operations(q, k, v, prefix, shape, nullptr), wanted,
                 dtype == at::kDouble ? 1e-12 : 1e-5);
  const at::AutoGradMode with_gradients(true);
  CHECK_THROWS_AS(attention(q, k, v, prefix, shape, nullptr), std::logic_error);
}

TEST_CASE("apply_linear, add_norm and apply_gelu match LibTorch's operations", "[trainer]") {
  const std::int64_t width = GENERATE(5, 48, 100);
  const Tensor x = random_tensor({37, width}, 1, at::kFloat);
  const Tensor y = random_tensor({37, width}, 2, at::kFloat);
  const Tensor weight = random_tensor({64, width}, 3, at::kFloat);
  const Tensor bias = random_tensor({64}, 4, at::kFloat);
  compare_attention(differentiate({x, weight, bias}, [&] { return apply_linear(x, weight, bias); }),
                    differentiate({x, weight, bias}, [&] { return at::linear(x, weight, bias); }),
                    1e-5);
  compare_attention(differentiate({x, weight}, [&] { return apply_linear(x, weight, {}); }),
                    differentiate({x, weight}, [&] { return at::linear(x, weight); }), 1e-5);
  LayerNorm norm{random_tensor({width}, 5, at::kFloat).detach(),
                 random_tensor({width}, 6, at::kFloat).detach(), 1e-5};
  compare_attention(differentiate({x, y}, [&] { return add_norm(x, y, norm); }),
                    differentiate({x, y}, [&] { return norm(x + y); }), 1e-5);
  compare_attention(differentiate({x}, [&] { return apply_gelu(x * 3); }),
                    differentiate({x}, [&] { return at::gelu(x * 3); }), 1e-5);
}

TEST_CASE("add_dropped_norm equals add_norm after drop to the last bit", "[trainer]") {
  const std::int64_t width = GENERATE(5, 48, 100);
  const std::int64_t rows = 37;
  const Tensor x = random_tensor({rows, width}, 1, at::kFloat);
  const Tensor y = random_tensor({rows, width}, 2, at::kFloat);
  const LayerNorm norm{random_tensor({width}, 5, at::kFloat).detach(),
                       random_tensor({width}, 6, at::kFloat).detach(), 1e-5};
  Dropout dropout;
  dropout.seeds = {3};
  std::vector<RowKey> keys(rows);
  for (std::size_t r = 0; r < keys.size(); ++r) keys[r].position = static_cast<std::int64_t>(r);
  const DropoutPlace place{dropout, 0.2, Purpose::attention_output_dropout, 4, keys};
  const auto same = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO("tensor " << i);
      CHECK(at::equal(a[i], b[i]));
    }
  };
  const auto apart = [&] { return add_norm(drop(x, place), y, norm); };
  const auto together = [&] { return add_dropped_norm(x, y, norm, place); };
  same(differentiate({x, y}, together), differentiate({x, y}, apart));
  x.requires_grad_(false);
  same(differentiate({y}, together), differentiate({y}, apart));
  y.requires_grad_(false);
  CHECK(at::equal(together(), apart()));
}
