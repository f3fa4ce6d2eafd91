#pragma once

// The parts of CUDA that the kernels use, for a host. Only emulated_kernels.cpp includes it.

#include <algorithm>
#include <array>
#include <bit>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace petlab::testing {

struct ThreadIndex {
  unsigned x = 0, y = 0, z = 0;
};

/// Runs the threads of one block on one thread of the host.
class EmulatedBlock {
 public:
  static constexpr int kLanes = 32;

  explicit EmulatedBlock(int threads) : threads_(static_cast<std::size_t>(threads)) {
    warps_.resize((threads_.size() + kLanes - 1) / kLanes);
  }

  /// Runs `kernel` once per thread. Throws std::logic_error if some threads wait at a barrier that
  /// others never reach.
  void run(const std::function<void()>& kernel) {
    for (Thread& thread : threads_) {
      thread = {boost::context::fiber(std::allocator_arg, stacks_,
                                      [this, &kernel](boost::context::fiber&& scheduler) {
                                        scheduler_ = std::move(scheduler);
                                        kernel();
                                        return std::move(scheduler_);
                                      }),
                Waiting::no, 0};
    }
    for (Warp& warp : warps_) warp = {};
    // A warp runs alone for a while, so that it gets ahead of the others and behind.
    while (const std::optional<std::size_t> warp = any_ready_warp()) {
      for (auto turns = std::uniform_int_distribution<int>(1, 200)(random_); turns > 0; --turns) {
        if (!run_warp(*warp)) break;
      }
    }
    for (const Thread& thread : threads_) {
      if (thread.fiber) throw std::logic_error("a kernel's threads wait for each other");
    }
  }

  void wait_for_block() { wait(Waiting::block); }
  void wait_for_warp() { wait(Waiting::warp); }

  /// Gives a value to the warp and returns the one from lane `from`.
  std::uint64_t exchanged(std::uint64_t given, int from) {
    Warp& warp = warps_[current_ / kLanes];
    Thread& self = threads_[current_];
    const std::size_t turn =
        self.exchanges++ % 2;  // two buffers: a fast lane must not overwrite the last
    warp.given[turn][current_ % kLanes] = given;
    wait(Waiting::warp);
    return warp.given[turn][static_cast<std::size_t>(from % kLanes)];
  }
  int lane() const { return static_cast<int>(current_ % kLanes); }

  ThreadIndex index_, block_, size_;

 private:
  enum class Waiting { no, block, warp };
  struct Thread {
    boost::context::fiber fiber;
    Waiting waiting = Waiting::no;
    std::size_t exchanges = 0;
  };
  struct Warp {
    std::array<std::array<std::uint64_t, kLanes>, 2> given{};
  };

  void wait(Waiting at) {
    threads_[current_].waiting = at;
    scheduler_ = std::move(scheduler_).resume();
  }

  std::pair<std::size_t, std::size_t> threads_of(std::size_t warp) const {
    return {warp * kLanes, std::min(threads_.size(), (warp + 1) * kLanes)};
  }
  bool is_ready(std::size_t thread) const {
    return threads_[thread].fiber && threads_[thread].waiting == Waiting::no;
  }

  /// A random warp with a thread that can run, after a barrier that all have reached has let them
  /// pass; std::nullopt if there is none.
  std::optional<std::size_t> any_ready_warp() {
    pass(0, threads_.size(), Waiting::block);
    std::vector<std::size_t> ready;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      const auto [from, to] = threads_of(w);
      bool any = false;
      for (std::size_t t = from; t < to; ++t) any = any || is_ready(t);
      if (any) ready.push_back(w);
    }
    if (ready.empty()) return std::nullopt;
    return ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)];
  }

  /// Runs a warp's threads up to their next barriers, in random order. Returns false if none ran.
  bool run_warp(std::size_t warp) {
    const auto [from, to] = threads_of(warp);
    std::array<std::size_t, kLanes> order{};
    std::iota(order.begin(), order.end(), from);
    std::shuffle(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(to - from), random_);
    bool any = false;
    for (std::size_t i = 0; i < to - from; ++i) {
      if (!is_ready(order[i])) continue;
      any = true;
      current_ = order[i];
      index_.x = static_cast<unsigned>(current_);
      threads_[current_].fiber = std::move(threads_[current_].fiber).resume();
    }
    pass(from, to, Waiting::warp);
    return any;
  }

  /// Lets threads pass a barrier that all of them have reached. Finished ones count as waiting.
  void pass(std::size_t from, std::size_t to, Waiting at) {
    for (std::size_t t = from; t < to; ++t) {
      if (threads_[t].fiber && threads_[t].waiting != at) return;
    }
    for (std::size_t t = from; t < to; ++t) threads_[t].waiting = Waiting::no;
  }

  boost::context::pooled_fixedsize_stack stacks_{64 * 1024};
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  boost::context::fiber scheduler_;
  std::size_t current_ = 0;
  std::mt19937 random_{std::random_device()()};
};

/// The running block; there is only one at a time.
inline EmulatedBlock* running_block = nullptr;

}  // namespace petlab::testing

#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define KERNEL static void
#define threadIdx (petlab::testing::running_block->index_)
#define blockIdx (petlab::testing::running_block->block_)
#define blockDim (petlab::testing::running_block->size_)

inline void __syncthreads() { petlab::testing::running_block->wait_for_block(); }
inline void __syncwarp() { petlab::testing::running_block->wait_for_warp(); }
template <typename T>
T __shfl_sync(unsigned, T given, int from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &given, sizeof given);
  bits = petlab::testing::running_block->exchanged(bits, from);
  T found;
  std::memcpy(&found, &bits, sizeof found);
  return found;
}
template <typename T>
T __shfl_xor_sync(unsigned all, T given, int apart) {
  return __shfl_sync(all, given, petlab::testing::running_block->lane() ^ apart);
}
inline unsigned __ballot_sync(unsigned all, bool given) {
  unsigned bits = 0;
  for (int lane = 0; lane < petlab::testing::EmulatedBlock::kLanes; ++lane) {
    bits |= static_cast<unsigned>(__shfl_sync(all, given ? 1U : 0U, lane)) << lane;
  }
  return bits;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
/// Only one thread runs at a time.
inline unsigned atomicAdd(unsigned* to, unsigned added) {
  const unsigned before = *to;
  *to += added;
  return before;
}
inline long long __double_as_longlong(double number) { return std::bit_cast<long long>(number); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float number) { return std::bit_cast<unsigned>(number); }
