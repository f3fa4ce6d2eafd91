#include "trainer/compute/dropout.h"

#include <optional>
#include <stdexcept>

#include "trainer/compute/device_rows.h"
#include "trainer/compute/dropout_draws.h"
#include "trainer/compute/row_kernels.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Calls work(from, to) for ranges that cover all rows, on all threads.
template <typename Work>
void each_part(std::int64_t rows, const Work& work) {
  at::parallel_for(0, rows, 16, work);
}

class DropFunction : public Function<DropFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given,
                        const std::optional<Tensor>& given_residual, Dropped dropped,
                        const DropoutPlace& place) {
    const Tensor x = given.contiguous();
    const Tensor residual = given_residual ? given_residual->contiguous() : Tensor();
    const std::int64_t width = x.size(1);
    Tensor output = at::empty_like(x);
    Tensor kept;
    if (given.requires_grad()) kept = at::empty(x.sizes(), x.options().dtype(at::kByte));
    const float* const from = x.const_data_ptr<float>();
    const float* const added = residual.defined() ? residual.const_data_ptr<float>() : nullptr;
    float* const to = output.mutable_data_ptr<float>();
    std::uint8_t* const flags = kept.defined() ? kept.mutable_data_ptr<std::uint8_t>() : nullptr;
    each_part(x.size(0), [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> multipliers(static_cast<std::size_t>(width));
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t at = r * width;
        fill_row(place, r, multipliers);
        drop_forward(dropped, width, from + at, multipliers.data(),
                     added == nullptr ? nullptr : added + at, to + at,
                     flags == nullptr ? nullptr : flags + at);
      }
    });
    context->save_for_backward({kept});
    context->saved_data["added"] = residual.defined();
    context->saved_data["scale"] = static_cast<double>(dropout_scale(place.p));
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Tensor to_x;
    if (context->needs_input_grad(0)) {
      const Tensor gradient = gradients[0].contiguous();
      const Tensor kept = context->get_saved_variables()[0];
      const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
      const std::int64_t width = gradient.size(1);
      to_x = at::empty_like(gradient);
      each_part(gradient.size(0), [&](std::int64_t begin, std::int64_t end) {
        drop_backward((end - begin) * width, gradient.const_data_ptr<float>() + begin * width,
                      kept.const_data_ptr<std::uint8_t>() + begin * width, scale,
                      to_x.mutable_data_ptr<float>() + begin * width);
      });
    }
    const bool added = context->saved_data["added"].toBool();
    return {to_x, added ? gradients[0] : Tensor(), Tensor(), Tensor()};
  }
};

Tensor times_multipliers(const Tensor& x, const DropoutPlace& at) {
  if (x.device().is_cpu()) return x * dropout_multipliers(at, x.size(1), x.scalar_type());
  if (const std::optional<Tensor> dropped = device_dropped(x, {}, at)) return *dropped;
  if (at.draws == nullptr) throw std::logic_error("dropout of rows that are not on the device");
  return drop_by(x, at.draws->kept(at.of, {at.purpose, at.layer}, at.p, x.size(1)), at.p);
}

}  // namespace

Dropout Dropout::of_trial(std::int64_t k) const {
  Dropout result = *this;
  result.seeds = {seeds[static_cast<std::size_t>(k)]};
  if (round_keys.defined()) result.round_keys = round_keys.narrow(-1, k, 1).contiguous();
  return result;
}

void fill_row(const DropoutPlace& at, std::int64_t r, std::span<float> multipliers) {
  const RowKey& row = at.rows[static_cast<std::size_t>(r)];
  StreamPlace place;
  place.seed = at.of.seeds[static_cast<std::size_t>(row.trial)];
  place.purpose = at.purpose;
  place.step = at.of.step;
  place.layer = static_cast<std::uint64_t>(at.layer);
  place.example = static_cast<std::uint64_t>(row.example);
  place.position = static_cast<std::uint64_t>(row.position);
  fill_dropout(place, at.p, multipliers);
}

Tensor dropout_multipliers(const DropoutPlace& at, std::int64_t width, at::ScalarType dtype) {
  const auto rows = static_cast<std::int64_t>(at.rows.size());
  Tensor multipliers = at::empty({rows, width}, at::kFloat);
  float* const data = multipliers.mutable_data_ptr<float>();
  each_part(rows, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t r = from; r < to; ++r) {
      fill_row(at, r, {data + r * width, static_cast<std::size_t>(width)});
    }
  });
  return dtype == at::kFloat ? multipliers : multipliers.to(dtype);
}

Tensor drop(const Tensor& x, const DropoutPlace& at) {
  if (!is_float_on_cpu(x)) return times_multipliers(x, at);
  return DropFunction::apply(x, std::nullopt, Dropped::itself, at);
}

Tensor drop_positive(const Tensor& x, const DropoutPlace& at) {
  if (!is_float_on_cpu(x)) return times_multipliers(at::relu(x), at);
  return DropFunction::apply(x, std::nullopt, Dropped::positive, at);
}

Tensor add_dropped(const Tensor& x, const Tensor& residual, const DropoutPlace& at) {
  if (const std::optional<Tensor> sum = device_dropped(x, residual, at)) return *sum;
  if (!is_float_on_cpu(x)) return residual + times_multipliers(x, at);
  return DropFunction::apply(x, std::optional(residual), Dropped::itself, at);
}

}  // namespace petlab::trainer
