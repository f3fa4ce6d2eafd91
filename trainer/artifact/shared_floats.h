#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace petlab::trainer {

/// Immutable numbers in any memory (a vector, a trained tensor, a mapped file), shared and kept
/// alive, never copied.
class SharedFloats {
 public:
  SharedFloats() = default;
  /// A view of `values`; `owner` keeps their memory alive.
  SharedFloats(std::span<const float> values, std::shared_ptr<const void> owner)
      : values_(values), owner_(std::move(owner)) {}
  SharedFloats(std::vector<float> values) {
    auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    values_ = *kept;
    owner_ = std::move(kept);
  }
  SharedFloats(std::initializer_list<float> values) : SharedFloats(std::vector<float>(values)) {}

  const float* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  const float& operator[](std::size_t i) const { return values_[i]; }
  std::span<const float> span() const { return values_; }
  friend bool operator==(const SharedFloats& a, const SharedFloats& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::span<const float> values_;
  std::shared_ptr<const void> owner_;
};

}  // namespace petlab::trainer
