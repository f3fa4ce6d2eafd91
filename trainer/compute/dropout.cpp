#include "trainer/compute/dropout.h"

namespace petlab::trainer {

Tensor dropout_multipliers(const Dropout& dropout, double p, Purpose purpose, std::int64_t layer,
                           std::span<const RowKey> rows, std::int64_t width, at::ScalarType dtype) {
  Tensor multipliers = at::empty({static_cast<std::int64_t>(rows.size()), width}, at::kFloat);
  float* const data = multipliers.mutable_data_ptr<float>();
  at::parallel_for(0, static_cast<std::int64_t>(rows.size()), 16,
                   [&](std::int64_t from, std::int64_t to) {
                     for (std::int64_t r = from; r < to; ++r) {
                       const RowKey& row = rows[static_cast<std::size_t>(r)];
                       StreamPlace place;
                       place.seed = dropout.seeds[static_cast<std::size_t>(row.trial)];
                       place.purpose = purpose;
                       place.step = dropout.step;
                       place.layer = static_cast<std::uint64_t>(layer);
                       place.example = static_cast<std::uint64_t>(row.example);
                       place.position = static_cast<std::uint64_t>(row.position);
                       fill_dropout(place, p, {data + r * width, static_cast<std::size_t>(width)});
                     }
                   });
  return dtype == at::kFloat ? multipliers : multipliers.to(dtype);
}

}  // namespace petlab::trainer
