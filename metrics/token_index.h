#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// Numbers the distinct tokens of a segment 0, 1, 2 … by their bytes. Reused between segments
/// without allocation. Tokens longer than 16 bytes are viewed, not copied, and must stay valid
/// until the next clear().
class TokenIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  /// Removes all tokens and reserves space for `tokens` calls of add().
  void clear(std::size_t tokens) {
    std::size_t capacity = slots_.size();
    if (capacity < 2 * tokens + 2) {
      capacity = capacity == 0 ? 64 : capacity;
      while (capacity < 2 * tokens + 2) capacity *= 2;
      slots_.assign(capacity, Slot{});
      stamp_ = 0;
    }
    if (++stamp_ == 0) {
      slots_.assign(capacity, Slot{});
      stamp_ = 1;
    }
    // Short segments use only a part of a table that a long one enlarged.
    mask_ = 63;
    while (mask_ + 1 < 2 * tokens + 2) mask_ = 2 * mask_ + 1;
    size_ = 0;
  }

  std::uint32_t size() const { return size_; }

  /// The number of `token`, which is added if new.
  std::uint32_t add(std::string_view token) {
    const Key key = key_of(token);
    for (std::size_t i = key.hash & mask_;; i = (i + 1) & mask_) {
      Slot& slot = slots_[i];
      if (slot.stamp != stamp_) {
        slot = {key.low, key.high, token.data(), static_cast<std::uint32_t>(token.size()),
                size_,   stamp_};
        return size_++;
      }
      if (equal(slot, key, token)) return slot.id;
    }
  }

  /// The number of `token`, or kNone.
  std::uint32_t find(std::string_view token) const {
    const Key key = key_of(token);
    for (std::size_t i = key.hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.stamp != stamp_) return kNone;
      if (equal(slot, key, token)) return slot.id;
    }
  }

 private:
  // Together with the length, `low` and `high` hold a token of up to 16 bytes completely.
  struct Key {
    std::uint64_t low;
    std::uint64_t high;
    std::size_t hash;
  };
  struct Slot {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    const char* data = nullptr;
    std::uint32_t size = 0;
    std::uint32_t id = 0;
    std::uint32_t stamp = 0;
  };

  template <class Integer>
  static std::uint64_t load(const char* p) {
    Integer value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  static Key key_of(std::string_view token) {
    const char* const p = token.data();
    const std::size_t n = token.size();
    Key key{0, 0, 0};
    if (n >= 8) {
      key.low = load<std::uint64_t>(p);
      key.high = load<std::uint64_t>(p + n - 8);
    } else if (n >= 4) {
      key.low = load<std::uint32_t>(p) | load<std::uint32_t>(p + n - 4) << 32;
    } else if (n > 0) {
      key.low = load<std::uint8_t>(p) | load<std::uint8_t>(p + n / 2) << 8 |
                load<std::uint8_t>(p + n - 1) << 16;
    }
    std::uint64_t hash = mix(key.low ^ 0x9E3779B97F4A7C15ULL,
                             key.high ^ (n * 0xBF58476D1CE4E5B9ULL) ^ 0x94D049BB133111EBULL);
    for (std::size_t i = 8; i + 8 < n; i += 8) {
      hash = mix(hash ^ 0x9E3779B97F4A7C15ULL, load<std::uint64_t>(p + i) ^ 0xD6E8FEB86659FD93ULL);
    }
    key.hash = static_cast<std::size_t>(hash);
    return key;
  }

  static bool equal(const Slot& slot, const Key& key, std::string_view token) {
    return slot.low == key.low && slot.high == key.high && slot.size == token.size() &&
           (token.size() <= 16 || std::memcmp(slot.data, token.data(), token.size()) == 0);
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::uint32_t stamp_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace petlab::metrics
