#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace petlab::trainer {

/// The uses of random numbers. Their values affect a trial's results: never renumber them, only
/// append.
enum class Purpose : std::uint32_t {
  shuffle = 1,            // order of the examples in an epoch
  initialisation = 2,     // weights of modules, scores and heads
  random_mask = 3,        // the random sub-networks
  embedding_dropout = 4,  // after the embeddings' LayerNorm
  attention_dropout = 5,  // on attention probabilities
  attention_output_dropout = 6,
  feed_forward_output_dropout = 7,
  head_input_dropout = 8,               // before the head's dense
  head_output_dropout = 9,              // before the head's out_proj
  module_dropout = 10,                  // inside a module
  task_choice = 11,                     // the task of a multi-task batch
  random_task_mask = 12,                // the random sub-networks of tasks
  cross_attention_dropout = 13,         // on the probabilities of attention to another sequence
  cross_attention_output_dropout = 14,  // after that sub-layer
  feed_forward_inner_dropout = 15,      // between the feed-forward's projections
  final_dropout = 16,                   // after the last norm of a stack
};

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// The constants of Philox4x32-10, for other implementations.
inline constexpr std::array<std::uint32_t, 2> kPhiloxMultipliers{0xD2511F53, 0xCD9E8D57};
inline constexpr std::array<std::uint32_t, 2> kPhiloxWeyl{0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

/// The place in a trial that a stream of random numbers belongs to. Different places have
/// independent streams. The numbers of a place do not depend on layout, batching, gangs or resumes.
struct StreamPlace {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::shuffle;
  std::uint64_t step = 0;      // optimizer step or epoch; below 2^32
  std::uint64_t layer = 0;     // layer, or index of a parameter; below 2^32
  std::uint64_t example = 0;   // index of the example in its split; below 2^32
  std::uint64_t position = 0;  // token in the example; below 2^32
};

/// The Philox key of all places with this seed, purpose and layer. The counter is (block, position,
/// example, step).
std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, Purpose purpose, std::uint64_t layer);

/// The random numbers of a place, in order.
class RandomStream {
 public:
  explicit RandomStream(const StreamPlace& place);
  std::uint32_t next_u32();
  /// A number below `bound`, without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// A number in [0, 1) with 24 bits.
  float uniform();
  /// A standard normal number (Box-Muller on two 32-bit draws, computed in double).
  double normal();

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
};

/// Dropout of one place: element i is dropout_scale(p) with probability 1 - p, else 0. p in [0, 1)
/// is rounded to multiples of 1/65536, at most 65535/65536. The 16 bits from 16·(i mod 8) of block
/// i / 8 decide, so an element does not depend on the length of its row. Activations are multiplied
/// by `multiplier`.
void fill_dropout(const StreamPlace& place, double p, std::span<float> multiplier);

/// The number of 16-bit values that mean 0 in fill_dropout; these are the lowest ones.
std::uint32_t dropped_of_65536(double p);

/// 1 / (1 - p) for the rounded p: the multiplier that fill_dropout writes for kept elements.
float dropout_scale(double p);

/// A permutation of 0 .. n-1 (Fisher-Yates): the order of epoch `epoch` of the trial's task `task`
/// (0 for a single task).
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::uint64_t task, std::uint64_t epoch,
                                      std::int64_t n);

/// Fill `out` with numbers from [-bound, bound) or N(0, std), to initialise the parameter with the
/// number `parameter` (the caller assigns each a permanent number).
void fill_uniform(std::uint64_t seed, std::uint64_t parameter, double bound, std::span<float> out);
void fill_normal(std::uint64_t seed, std::uint64_t parameter, double std_dev, std::span<float> out);

/// The random mask of a parameter in layer `of` (Purpose::random_mask) or task `of`
/// (Purpose::random_task_mask). It has exactly n - zeros_in_mask(k, n) ones, and all such masks are
/// equally likely.
void fill_random_mask(Purpose purpose, std::uint64_t seed, std::uint64_t parameter,
                      std::uint64_t of, double sparsity_ratio, std::span<std::uint8_t> mask);

}  // namespace petlab::trainer
