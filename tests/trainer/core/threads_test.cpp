// LibTorch's threads are used, and their number does not change the results of the trainer's own
// loops.
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/catch.h"
#include "trainer/backbones/attention.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/products.h"
#include "trainer/compute/rms_norm.h"

using namespace petlab::trainer;

namespace {

/// Sets LibTorch's number of threads during its lifetime.
class WithThreads {
 public:
  explicit WithThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~WithThreads() { at::set_num_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_;
};

constexpr std::int64_t kHeads = 3, kWidth = kHeads * 32;

/// Sequences of 1 to 40 tokens.
PackedSequences sequences_of_all_lengths() {
  PackedSequences sequences;
  sequences.offsets = {0};
  for (std::int64_t length = 1; length <= 40; ++length) {
    sequences.offsets.push_back(sequences.offsets.back() + length);
    sequences.examples.push_back(length);
  }
  sequences.trial_sequences = {0, 15, 40};
  return sequences;
}

Tensor random_rows(std::int64_t rows, std::uint64_t number) {
  Tensor tensor = at::empty({rows, kWidth}, at::kFloat);
  fill_normal(7, number, 1.0,
              {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
  return tensor.requires_grad_(true);
}

/// The results and gradients of all of the trainer's own loops over rows and sequences.
std::vector<Tensor> all_loops() {
  const PackedSequences sequences = sequences_of_all_lengths();
  const std::int64_t tokens = sequences.tokens();
  const Tensor x = random_rows(tokens, 1), y = random_rows(tokens, 2), z = random_rows(tokens, 3);
  const Tensor keys = random_rows(10, 4), values = random_rows(10, 5);
  Dropout dropout;
  dropout.hidden = 0.1;
  dropout.attention = 0.3;
  dropout.step = 11;
  dropout.seeds = {1, 2};
  std::vector<RowKey> rows;
  for (std::int64_t r = 0; r < tokens; ++r) rows.push_back({r % 2, r, 3 * r});
  const DropoutPlace place{dropout, 0.1, Purpose::feed_forward_output_dropout, 2, rows};
  const LayerNorm norm{random_rows(1, 6)[0].detach(), random_rows(1, 7)[0].detach(), 1e-5};
  const RmsNorm rms{norm.weight};
  const std::optional<Prefix> prefix =
      Prefix{keys.view({2, 5, kWidth}), values.view({2, 5, kWidth})};
  const AttentionShape shape{sequences, sequences.offsets, kHeads, 2};

  const Tensor attended = attention(x, y, z, prefix, shape, &dropout);
  const Tensor normalised = add_dropped_norm(add_norm(attended, x, norm), y, norm, place);
  const Tensor dropped = drop_positive(drop(apply_gelu(normalised), place), place);
  const Tensor output = rms(add_dropped(dropped, normalised, place));
  output.backward(random_rows(tokens, 8).detach());
  std::vector<Tensor> results{attended, normalised, dropped, output};
  for (const Tensor& input : {x, y, z, keys, values}) results.push_back(input.grad());
  results.push_back(widened(x.detach().to(at::kBFloat16), norm.bias));
  return results;
}

}  // namespace

TEST_CASE("a parallel loop uses all of LibTorch's threads", "[trainer]") {
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    std::mutex held;
    std::set<std::thread::id> seen;
    at::parallel_for(0, threads, 1, [&](std::int64_t, std::int64_t) {
      const std::lock_guard lock(held);
      seen.insert(std::this_thread::get_id());
    });
    CHECK(seen.size() == static_cast<std::size_t>(threads));
  }
}

TEST_CASE("the number of threads does not change the results of the trainer's own loops",
          "[trainer]") {
  const auto made_with = [](int threads) {
    const WithThreads with(threads);
    return all_loops();
  };
  const std::vector<Tensor> alone = made_with(1);
  for (const int threads : {2, 3, 8}) {
    const std::vector<Tensor> together = made_with(threads);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      INFO("tensor " << i << " with " << threads << " threads");
      CHECK(at::isfinite(alone[i]).all().item<bool>());
      CHECK(together[i].equal(alone[i]));
    }
  }
}
