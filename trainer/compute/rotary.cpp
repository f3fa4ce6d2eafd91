#include "trainer/compute/rotary.h"

#include <vector>

#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Turns by the angles of `cosine` and `direction` · `sine`.
Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine, double direction) {
  const std::int64_t half = cosine.size(2);
  const Tensor pairs = x.reshape({x.size(0), -1, 2, half});
  const Tensor a = pairs.select(2, 0), b = pairs.select(2, 1);
  const Tensor output = at::empty(pairs.sizes(), x.options());
  Tensor first = output.select(2, 0), second = output.select(2, 1);
  at::mul_out(first, a, cosine).addcmul_(b, sine, -direction);
  at::mul_out(second, b, cosine).addcmul_(a, sine, direction);
  return output.view({x.size(0), -1});
}

class RotateFunction : public Function<RotateFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosine,
                        const Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return turned(x, cosine, sine, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], -1), Tensor(), Tensor()};
  }
};

}  // namespace

Rotary::Rotary(std::span<const std::int64_t> positions, std::int64_t rows, std::int64_t d_head,
               double theta, const Placement& placement) {
  const at::ScalarType type = placement.compute == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<std::int64_t> all(positions.begin(), positions.end());
  all.resize(static_cast<std::size_t>(rows));
  const Tensor exponents = at::arange(0, d_head, 2, type) / d_head;
  const Tensor angles =
      at::tensor(all, type).unsqueeze(1) * at::pow(at::Scalar(theta), exponents).reciprocal();
  const auto placed = [&](const Tensor& of) {
    return on_device(of.to(placement.compute), placement.device).unsqueeze(1);
  };
  cosine = placed(angles.cos());
  sine = placed(angles.sin());
}

Tensor rotate(const Tensor& x, const Rotary& by) {
  return RotateFunction::apply(x, by.cosine, by.sine);
}

}  // namespace petlab::trainer
