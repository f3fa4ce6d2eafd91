#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace petlab::trainer {

/// The limit for each kind of value.
inline constexpr std::int64_t kMostKeptBytes = std::int64_t{256} << 20;

/// Values that a worker keeps between trials: the one used last and, of the others, the most
/// recently used, up to `most_bytes` in total. Not thread-safe.
template <typename Key, typename Value>
class RecentlyUsed {
 public:
  using Shared = std::shared_ptr<const Value>;
  explicit RecentlyUsed(std::int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Returns the value for the key, which is now the one used last, or nullptr.
  Shared find(const Key& key) {
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.key == key; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().value;
  }
  /// Adds the value used last.
  void add(Key key, Shared value, std::int64_t bytes) {
    kept_.push_front({std::move(key), std::move(value), bytes});
  }
  /// Removes the values that exceed the limit, all but the one used last, and returns them.
  std::vector<Shared> remove_surplus() { return remove_beyond(kept_.empty() ? 0 : 1); }
  /// Likewise, counting the one used last too: another is about to be added.
  std::vector<Shared> make_room() { return remove_beyond(0); }
  /// The size of all values but the one used last.
  std::int64_t bytes_of_others() const { return bytes_without(kept_.empty() ? 0 : 1); }

 private:
  struct Kept {
    Key key;
    Shared value;
    std::int64_t bytes;
  };

  std::int64_t bytes_without(std::ptrdiff_t first) const {
    std::int64_t sum = 0;
    for (auto one = std::next(kept_.begin(), first); one != kept_.end(); ++one) sum += one->bytes;
    return sum;
  }
  std::vector<Shared> remove_beyond(std::ptrdiff_t first) {
    std::vector<Shared> removed;
    while (bytes_without(first) > most_bytes_) {
      removed.push_back(std::move(kept_.back().value));
      kept_.pop_back();
    }
    return removed;
  }

  std::int64_t most_bytes_;
  std::list<Kept> kept_;  // most recently used first
};

}  // namespace petlab::trainer
