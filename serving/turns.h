#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace petlab::serving {

/// Who sends a long answer now. Where all send at the same time, each a piece, all of them are
/// finished at the end; one after the other, half of them are finished at half the time. So few
/// send at once, in the order in which they asked. Who takes nothing is passed over, and so is who
/// takes long: they go on beside the others, so that slow readers hold nobody up.
class Turns {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kAtOnce = 8;
  /// Nothing was taken for so long.
  static constexpr std::chrono::milliseconds kPatience{5};
  /// A turn is over after so long, however much is taken.
  static constexpr std::chrono::milliseconds kLongest{50};

  explicit Turns(std::chrono::milliseconds patience = kPatience,
                 std::chrono::milliseconds longest = kLongest)
      : patience_(patience), longest_(longest) {}

  /// Calls `begin` when it is the turn of `who`: now, or when another has left or is passed over.
  void ask(const void* who, Time now, std::function<void()> begin);
  /// Something of its answer was taken.
  void took(const void* who, Time now);
  /// Its answer is sent, or nobody wants it any more. Whoever has no turn may leave too.
  void leave(const void* who, Time now);
  /// Passes over whoever must be; to be called every few milliseconds while somebody waits.
  void look(Time now);
  bool somebody_waits() const { return !waiting_.empty(); }
  /// Forgets those that wait, without their turn.
  void clear();

 private:
  struct Waiting {
    const void* who;
    std::function<void()> begin;
  };
  struct Turn {
    const void* who;
    Time begun;
    Time took;
  };
  void fill(Time now);

  std::chrono::milliseconds patience_;
  std::chrono::milliseconds longest_;
  std::deque<Waiting> waiting_;
  std::vector<Turn> turns_;
};

}  // namespace petlab::serving
