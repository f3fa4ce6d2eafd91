#include "trainer/compute/rms_norm.h"

#include "trainer/compute/row_kernels.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

class RmsNormFunction : public Function<RmsNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        double eps) {
    const Tensor x = given.contiguous();
    const std::int64_t width = x.size(1);
    const bool differentiated = given.requires_grad();
    Tensor output = at::empty_like(x);
    Tensor inverse = differentiated ? at::empty({x.size(0)}, x.options()) : Tensor();
    float* const roots = differentiated ? inverse.mutable_data_ptr<float>() : nullptr;
    at::parallel_for(0, x.size(0), 64, [&](std::int64_t from, std::int64_t to) {
      rms_norm_forward(to - from, width, x.const_data_ptr<float>() + from * width,
                       weight.const_data_ptr<float>(), static_cast<float>(eps),
                       output.mutable_data_ptr<float>() + from * width,
                       roots == nullptr ? nullptr : roots + from);
    });
    context->save_for_backward({x, inverse, weight});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    const std::int64_t width = gradient.size(1);
    Tensor to_x = at::empty_like(gradient);
    at::parallel_for(0, gradient.size(0), 64, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t at = from * width;
      rms_norm_backward(to - from, width, gradient.const_data_ptr<float>() + at,
                        saved[2].const_data_ptr<float>(), saved[0].const_data_ptr<float>() + at,
                        saved[1].const_data_ptr<float>() + from,
                        to_x.mutable_data_ptr<float>() + at);
    });
    return {to_x, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor RmsNorm::operator()(const Tensor& x) const {
  const bool known = is_float_on_cpu(x) && weight.scalar_type() == at::kFloat && x.dim() == 2;
  if (!known || weight.requires_grad()) return at::rms_norm(x, {weight.size(0)}, weight, eps);
  return RmsNormFunction::apply(x, weight, eps);
}

}  // namespace petlab::trainer
