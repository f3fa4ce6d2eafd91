#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/device_kernels.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The keys that Philox takes in each round of each stream of these trials' dropout: (purposes,
/// layers, rounds, 2, trials) of kLong on the device, where one copy brings them.
Tensor dropout_round_keys(std::span<const std::uint64_t> seeds, std::int64_t layers,
                          at::Device device);

struct DrawnPlace;
/// Returns Dropout::round_keys, or computes those of `places` if the step has none.
Tensor round_keys_of(const Dropout& dropout, std::span<const DrawnPlace> places, at::Device device);

/// A place of a forward pass that has dropout.
struct DrawnPlace {
  Purpose purpose = Purpose::embedding_dropout;
  std::int64_t layer = 0;
  bool operator==(const DrawnPlace&) const = default;
};
/// Places that ask for equally wide dropout of the same rows, in the order in which they do.
using DrawnPlaces = std::vector<DrawnPlace>;

/// Draws dropout of rows on their device, for one forward pass: the same numbers as fill_dropout. A
/// kernel of petlab's draws them, or LibTorch's integer operations if the device has no kernels.
/// The host neither draws nor waits; it copies the rows' keys once per batch. Places with few rows
/// are drawn together, because even a small draw takes a launch, or a hundred operations.
class DropoutDraws {
 public:
  /// Trial, example and position of the rows: of kLong, of one number of dimensions, which
  /// broadcast to the rows' shape; `trials` is not read where there is one.
  DropoutDraws(Tensor trials, Tensor examples, Tensor positions, std::vector<DrawnPlaces> places);
  /// Of rows in a list, which are copied to the device.
  DropoutDraws(std::span<const RowKey> rows, std::vector<DrawnPlaces> places, at::Device device);

  /// (rows…, width) of kBool: which of the multipliers that fill_dropout makes with rate `p` are
  /// not 0. Throws std::logic_error for a place that is none of the places.
  Tensor kept(const Dropout& of, const DrawnPlace& place, double p, std::int64_t width);

  /// (places, rows…, width) of kBool by a kernel, for at most DropoutArguments::kMostPlaces.
  Tensor drawn_by(DeviceKernels& kernels, const Dropout& of, std::span<const DrawnPlace> places,
                  double p, std::int64_t width) const;

 private:
  /// Places, of which those from `first` on are drawn.
  struct Series {
    DrawnPlaces places;
    std::size_t first = 0;
    Tensor kept;  // (places, rows…, width)
  };
  Tensor draw(const Dropout& of, std::span<const DrawnPlace> places, double p,
              std::int64_t width) const;
  Tensor drawn_by_operations(const Dropout& of, std::span<const DrawnPlace> places, double p,
                             std::int64_t width) const;

  Tensor trials_, examples_, positions_;
  std::int64_t rows_;
  std::vector<Series> series_;
};

/// x · dropout_scale(p) where it is kept, else 0. Differentiable; backward needs a byte a number.
Tensor drop_by(const Tensor& x, const Tensor& kept, double p);

}  // namespace petlab::trainer
