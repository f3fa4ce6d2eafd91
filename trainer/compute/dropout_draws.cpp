#include "trainer/compute/dropout_draws.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/compute/kernels/arguments.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

constexpr std::int64_t kPurposes = static_cast<std::int64_t>(Purpose::final_dropout) + 1;
constexpr std::int64_t kNumbersABlock = 8;  // of 16 bits each
/// Enough to keep any device busy. One word of all blocks takes 8 MiB, and about ten are held at a
/// time.
constexpr std::int64_t kBlocksAtOnce = std::int64_t{1} << 20;
constexpr std::int64_t kWord = 0xFFFFFFFF;

/// philox() of counters whose shapes broadcast, with the keys (rounds, 2, …) of each round. Words
/// are kLong below 2^32. In the last two, only the low 32 bits are valid.
std::array<Tensor, 4> philox_of_operations(std::array<Tensor, 4> counter, const Tensor& keys) {
  // kLong products wrap around to the same 64 bits as unsigned ones. The shift copies the sign into
  // the upper bits, but the mask keeps only the correct 32.
  const auto next = [](const Tensor& product, const Tensor& other, const Tensor& key) {
    return product.bitwise_right_shift(32).bitwise_xor(other ^ key).bitwise_and_(kWord);
  };
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Tensor product0 = counter[0] * static_cast<std::int64_t>(kPhiloxMultipliers[0]);
    const Tensor product1 = counter[2] * static_cast<std::int64_t>(kPhiloxMultipliers[1]);
    const Tensor of_round = keys.select(0, round);
    // Thanks to broadcasting, the first two rounds process columns and rows separately.
    counter = {next(product1, counter[1], of_round.select(0, 0)), product1,
               next(product0, counter[3], of_round.select(0, 1)), product0};
  }
  return counter;
}

/// (3, rows): trial, example and position of each row.
Tensor numbers_of(std::span<const RowKey> rows, at::Device device) {
  const auto n = static_cast<std::int64_t>(rows.size());
  Tensor numbers = at::empty({3, n}, at::kLong);
  auto of = numbers.accessor<std::int64_t, 2>();
  for (std::int64_t r = 0; r < n; ++r) {
    const RowKey& row = rows[static_cast<std::size_t>(r)];
    of[0][r] = row.trial;
    of[1][r] = row.example;
    of[2][r] = row.position;
  }
  return on_device(numbers, device);
}

/// The numbers in the type that kernels/arguments.h declares.
const long long* long_numbers(const Tensor& of) {
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  return reinterpret_cast<const long long*>(of.const_data_ptr<std::int64_t>());
}

class DropByFunction : public torch::autograd::Function<DropByFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& kept, double scale) {
    context->save_for_backward({kept});
    context->saved_data["scale"] = scale;
    return at::native_dropout_backward(x, kept, scale);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {at::native_dropout_backward(gradients[0], context->get_saved_variables()[0],
                                        context->saved_data["scale"].toDouble()),
            Tensor(), Tensor()};
  }
};

}  // namespace

Tensor dropout_round_keys(std::span<const std::uint64_t> seeds, std::int64_t layers,
                          at::Device device) {
  const auto trials = static_cast<std::int64_t>(seeds.size());
  Tensor keys = at::empty({kPurposes, layers, kPhiloxRounds, 2, trials}, at::kLong);
  auto of = keys.accessor<std::int64_t, 5>();
  for (std::int64_t purpose = 0; purpose < kPurposes; ++purpose) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (std::int64_t k = 0; k < trials; ++k) {
        auto key = stream_key(seeds[static_cast<std::size_t>(k)], static_cast<Purpose>(purpose),
                              static_cast<std::uint64_t>(layer));
        for (std::int64_t round = 0; round < kPhiloxRounds; ++round) {
          for (std::size_t word = 0; word < 2; ++word) {
            of[purpose][layer][round][static_cast<std::int64_t>(word)][k] = key[word];
            key[word] += kPhiloxWeyl[word];
          }
        }
      }
    }
  }
  return on_device(keys, device);
}

Tensor round_keys_of(const Dropout& dropout, std::span<const DrawnPlace> places,
                     at::Device device) {
  if (dropout.round_keys.defined()) return dropout.round_keys;
  std::int64_t layers = 1;
  for (const DrawnPlace& place : places) layers = std::max(layers, place.layer + 1);
  return dropout_round_keys(dropout.seeds, layers, device);
}

DropoutDraws::DropoutDraws(Tensor trials, Tensor examples, Tensor positions,
                           std::vector<DrawnPlaces> places)
    : trials_(std::move(trials)),
      examples_(std::move(examples)),
      positions_(std::move(positions)),
      rows_(1) {
  for (std::int64_t d = 0; d < examples_.dim(); ++d) {
    rows_ *= std::max(examples_.size(d), positions_.size(d));
  }
  for (DrawnPlaces& one : places) series_.push_back({std::move(one), 0, Tensor()});
}

DropoutDraws::DropoutDraws(std::span<const RowKey> rows, std::vector<DrawnPlaces> places,
                           at::Device device)
    : rows_(static_cast<std::int64_t>(rows.size())) {
  const Tensor numbers = numbers_of(rows, device);
  trials_ = numbers.select(0, 0);
  examples_ = numbers.select(0, 1);
  positions_ = numbers.select(0, 2);
  for (DrawnPlaces& one : places) series_.push_back({std::move(one), 0, Tensor()});
}

Tensor DropoutDraws::kept(const Dropout& of, const DrawnPlace& place, double p,
                          std::int64_t width) {
  for (Series& series : series_) {
    const auto found = std::find(series.places.begin(), series.places.end(), place);
    if (found == series.places.end()) continue;
    const auto at = static_cast<std::size_t>(found - series.places.begin());
    const auto drawn = series.kept.defined() ? static_cast<std::size_t>(series.kept.size(0)) : 0;
    if (at < series.first || at >= series.first + drawn) {
      const std::int64_t blocks = rows_ * ((width + kNumbersABlock - 1) / kNumbersABlock);
      const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(
          kBlocksAtOnce / std::max<std::int64_t>(1, blocks), 1, DropoutArguments::kMostPlaces));
      series.first = at;
      series.kept = Tensor();  // layers hold the parts that they still need
      series.kept =
          draw(of, std::span(series.places).subspan(at, std::min(most, series.places.size() - at)),
               p, width);
    }
    return series.kept.select(0, static_cast<std::int64_t>(at - series.first));
  }
  throw std::logic_error("dropout was not announced for purpose " +
                         std::to_string(static_cast<std::uint32_t>(place.purpose)) + " of layer " +
                         std::to_string(place.layer));
}

Tensor DropoutDraws::draw(const Dropout& of, std::span<const DrawnPlace> places, double p,
                          std::int64_t width) const {
  if (DeviceKernels* const kernels = device_kernels(examples_.device())) {
    return drawn_by(*kernels, of, places, p, width);
  }
  return drawn_by_operations(of, places, p, width);
}

Tensor DropoutDraws::drawn_by(DeviceKernels& kernels, const Dropout& of,
                              std::span<const DrawnPlace> places, double p,
                              std::int64_t width) const {
  const Tensor table = round_keys_of(of, places, examples_.device());
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(places.size())};
  for (std::int64_t d = 0; d < examples_.dim(); ++d) {
    shape.push_back(std::max(examples_.size(d), positions_.size(d)));
  }
  shape.push_back(width);
  Tensor kept = at::empty(shape, examples_.options().dtype(at::kBool));
  DropoutArguments arguments{};
  arguments.round_keys = long_numbers(table);
  for (std::size_t i = 0; i < places.size(); ++i) {
    arguments.of_place[i] =
        static_cast<int>(static_cast<std::int64_t>(places[i].purpose) * table.stride(0) +
                         places[i].layer * table.stride(1));
  }
  arguments.trials = static_cast<int>(table.size(4));
  arguments.word_stride = static_cast<int>(table.stride(3));
  const auto point = [](const Tensor& numbers, const long long*& at, int(&strides)[2]) {
    at = long_numbers(numbers);
    for (std::int64_t d = 0; d < numbers.dim(); ++d) {
      strides[d] = numbers.size(d) == 1 ? 0 : static_cast<int>(numbers.stride(d));
    }
  };
  point(trials_, arguments.trial, arguments.trial_strides);
  point(examples_, arguments.example, arguments.example_strides);
  point(positions_, arguments.position, arguments.position_strides);
  arguments.places = shape.front();
  arguments.rows = rows_;
  arguments.inner = examples_.dim() > 1 ? shape[2] : 1;
  arguments.width = width;
  arguments.step = static_cast<unsigned>(of.step);
  arguments.dropped = dropped_of_65536(p);
  arguments.kept = reinterpret_cast<unsigned char*>(kept.mutable_data_ptr<bool>());
  constexpr int kThreads = 256;
  const std::int64_t blocks =
      arguments.places * rows_ * ((width + kNumbersABlock - 1) / kNumbersABlock);
  kernels.launch("dropout", "dropout_kept", {},
                 {(blocks + kThreads - 1) / kThreads, 1, 1, kThreads}, &arguments);
  return kept;
}

std::vector<Tensor> DropoutDraws::set_arguments(RowDropout& arguments, const Dropout& of,
                                                const DrawnPlace& place, double p) const {
  if (examples_.dim() != 1) throw std::logic_error("dropout of rows that are no list");
  const Tensor table = round_keys_of(of, {&place, 1}, examples_.device());
  const Tensor keys =
      table.select(0, static_cast<std::int64_t>(place.purpose)).select(0, place.layer);
  arguments.round_keys = long_numbers(keys);
  arguments.word_stride = static_cast<int>(keys.stride(1));
  arguments.trials = static_cast<int>(keys.size(2));
  arguments.trial = long_numbers(trials_);
  arguments.example = long_numbers(examples_);
  arguments.position = long_numbers(positions_);
  arguments.step = static_cast<unsigned>(of.step);
  arguments.dropped = dropped_of_65536(p);
  arguments.kept_scale = dropout_scale(p);
  return {table, trials_, examples_, positions_};
}

Tensor DropoutDraws::drawn_by_operations(const Dropout& of, std::span<const DrawnPlace> places,
                                         double p, std::int64_t width) const {
  const at::NoGradGuard no_grad;
  const Tensor table = round_keys_of(of, places, examples_.device());
  std::vector<Tensor> of_places;
  for (const DrawnPlace& place : places) {
    of_places.push_back(
        table.select(0, static_cast<std::int64_t>(place.purpose)).select(0, place.layer));
  }
  Tensor keys = at::stack(of_places, 2);  // (rounds, 2, places, trials)
  // (rounds, 2, places, rows…, 1)
  std::vector<std::int64_t> shape{keys.size(0), 2, keys.size(2)};
  if (keys.size(3) > 1) {
    keys = keys.index_select(3, trials_.flatten());
    shape.insert(shape.end(), trials_.sizes().begin(), trials_.sizes().end());
  } else {
    shape.insert(shape.end(), static_cast<std::size_t>(examples_.dim()), 1);
  }
  shape.push_back(1);
  const at::TensorOptions whole = examples_.options();
  const auto words = philox_of_operations(
      {at::arange((width + kNumbersABlock - 1) / kNumbersABlock, whole), positions_.unsqueeze(-1),
       examples_.unsqueeze(-1), at::full({1}, static_cast<std::int64_t>(of.step), whole)},
      keys.reshape(shape));
  // Views two 64-bit numbers as four 16-bit numbers each, the lowest first: processors are
  // little-endian.
  const Tensor numbers = at::stack({words[1].bitwise_left_shift(32).bitwise_or_(words[0]),
                                    words[3].bitwise_left_shift(32).bitwise_or_(words[2])},
                                   -1)
                             .flatten(-2)
                             .view(at::kShort);
  // Flipping the highest bit makes a signed comparison order numbers as unsigned.
  constexpr std::int64_t kHighest = 0x8000;
  return numbers.bitwise_xor(-kHighest)
      .ge(static_cast<std::int64_t>(dropped_of_65536(p)) - kHighest)
      .narrow(-1, 0, width);
}

Tensor drop_by(const Tensor& x, const Tensor& kept, double p) {
  return DropByFunction::apply(x, kept, static_cast<double>(dropout_scale(p)));
}

}  // namespace petlab::trainer
