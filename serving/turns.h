#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace petlab::serving {

/// Decides which clients receive long answers now. If all receive pieces in parallel, all finish at
/// the end; one after the other, half of them finish in half the time. So only a few receive at the
/// same time, in the order of their requests. A client that reads nothing or takes long loses its
/// turn, but continues in parallel, so that slow clients delay nobody.
class Turns {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kAtOnce = 8;
  /// A turn ends after this time without progress.
  static constexpr std::chrono::milliseconds kPatience{5};
  /// A turn ends after this time in any case.
  static constexpr std::chrono::milliseconds kLongest{50};

  explicit Turns(std::chrono::milliseconds patience = kPatience,
                 std::chrono::milliseconds longest = kLongest)
      : patience_(patience), longest_(longest) {}

  /// Calls `begin` when the turn of `who` comes: now, or when another's turn ends.
  void ask(const void* who, Time now, std::function<void()> begin);
  /// Records progress of `who`.
  void took(const void* who, Time now);
  /// Ends the turn of `who`: its answer is sent or no longer wanted. May be called without a turn.
  void leave(const void* who, Time now);
  /// Ends overdue turns. Call every few milliseconds while a client waits.
  void look(Time now);
  bool somebody_waits() const { return !waiting_.empty(); }
  /// Removes all waiting clients without calling them.
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
