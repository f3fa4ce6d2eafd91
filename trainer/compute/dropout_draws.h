#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/device_kernels.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"

struct RowDropout;

namespace petlab::trainer {

/// The keys of each Philox round for each dropout stream of these trials: (purposes, layers,
/// rounds, 2, trials) of kLong, brought to the device in one copy.
Tensor dropout_round_keys(std::span<const std::uint64_t> seeds, std::int64_t layers,
                          at::Device device);

struct DrawnPlace;
/// Returns Dropout::round_keys, or computes those of `places` if the step has none.
Tensor round_keys_of(const Dropout& dropout, std::span<const DrawnPlace> places, at::Device device);

/// A place in a forward pass with dropout.
struct DrawnPlace {
  Purpose purpose = Purpose::embedding_dropout;
  std::int64_t layer = 0;
  bool operator==(const DrawnPlace&) const = default;
};
/// Places with dropout of the same rows and width, in the order of the forward pass.
using DrawnPlaces = std::vector<DrawnPlace>;

/// Draws dropout of rows on their device, for one forward pass: the same numbers as fill_dropout. A
/// kernel of petlab's draws them, or LibTorch's integer operations if the device has no kernels.
/// The host neither draws nor waits; it copies the rows' keys once per batch. Places with few rows
/// are drawn together, because even a small draw takes a launch, or a hundred operations.
class DropoutDraws {
 public:
  /// The rows' trials, examples and positions: kLong, with the same number of dimensions, and
  /// broadcasting to the rows' shape. `trials` is not read if there is only one.
  DropoutDraws(Tensor trials, Tensor examples, Tensor positions, std::vector<DrawnPlaces> places);
  /// For a list of rows, which is copied to the device.
  DropoutDraws(std::span<const RowKey> rows, std::vector<DrawnPlaces> places, at::Device device);

  /// (rows…, width) of kBool: true where the multipliers of fill_dropout with rate `p` are not 0.
  /// Throws std::logic_error for an unknown place.
  Tensor kept(const Dropout& of, const DrawnPlace& place, double p, std::int64_t width);

  /// Draws (places, rows…, width) of kBool in a kernel, for at most DropoutArguments::kMostPlaces.
  Tensor drawn_by(DeviceKernels& kernels, const Dropout& of, std::span<const DrawnPlace> places,
                  double p, std::int64_t width) const;

  /// Sets the arguments of a kernel that draws a list of rows itself. Returns the tensors that they
  /// point to, which the caller must keep.
  std::vector<Tensor> set_arguments(RowDropout& arguments, const Dropout& of,
                                    const DrawnPlace& place, double p) const;

 private:
  /// A list of places. `kept` holds the draws of those from `first` on.
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

/// Returns x · dropout_scale(p) where kept, else 0. Differentiable; backward needs one byte per
/// number.
Tensor drop_by(const Tensor& x, const Tensor& kept, double p);

}  // namespace petlab::trainer
