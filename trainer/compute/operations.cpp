#include "trainer/compute/operations.h"

#include <algorithm>
#include <optional>

#include "trainer/compute/products.h"
#include "trainer/compute/row_kernels.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

class LinearFunction : public Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    context->save_for_backward({weight.requires_grad() ? x : Tensor(), weight});
    context->saved_data["bias"] = bias.has_value();
    return forward_product(x, weight, bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    Tensor to_x, to_weight, to_bias;
    if (context->needs_input_grad(0)) to_x = input_gradient_product(gradient, saved[1]);
    if (context->needs_input_grad(1)) {
      const at::ScalarType type = saved[1].scalar_type();
      to_weight = weight_gradient_product(gradient.to(type), saved[0].to(type));
    }
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      to_bias = gradient.sum(0);
    }
    return {to_x, to_weight, to_bias};
  }
};

/// A linear layer that is not trained: what its products read.
struct FrozenLinear {
  Tensor forward, gradient;
  Tensor bias;  // may be undefined
};

class FrozenLinearFunction : public Function<FrozenLinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const FrozenLinear& layer) {
    context->saved_data["weight"] = layer.gradient;
    return forward_product(x, layer.forward, layer.bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {
        input_gradient_product(gradients[0].contiguous(), context->saved_data["weight"].toTensor()),
        Tensor()};
  }
};

/// Frozen bfloat16 layers of one input.
struct FrozenLinears {
  std::vector<Tensor> forward, gradient, biases;
};

class FrozenLinearsFunction : public Function<FrozenLinearsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x,
                               const FrozenLinears& layers) {
    context->saved_data["weights"] = c10::List<Tensor>(layers.gradient);
    return forward_products(x, layers.forward, layers.biases);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const std::vector<Tensor> weights = context->saved_data["weights"].toTensorVector();
    // What nothing was made of has no gradient.
    std::vector<Tensor> of, by;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      of.push_back(gradients[i]);
      by.push_back(weights[i]);
    }
    return {of.empty() ? Tensor() : summed_input_gradient(of, by), Tensor()};
  }
};

class AddNormFunction : public Function<AddNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b,
                        const Tensor& weight, const Tensor& bias, double eps) {
    const Tensor x = a.contiguous();
    const Tensor y = b.contiguous();
    const std::int64_t rows = x.size(0);
    const std::int64_t width = x.size(1);
    const bool differentiated = a.requires_grad() || b.requires_grad();
    Tensor output = at::empty_like(x);
    Tensor normalised = differentiated ? at::empty_like(x) : Tensor();
    Tensor inverse = differentiated ? at::empty({rows}, x.options()) : Tensor();
    float* const kept = differentiated ? normalised.mutable_data_ptr<float>() : nullptr;
    float* const deviations = differentiated ? inverse.mutable_data_ptr<float>() : nullptr;
    at::parallel_for(0, rows, 64, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t at = from * width;
      add_norm_forward(to - from, width, x.const_data_ptr<float>() + at,
                       y.const_data_ptr<float>() + at, weight.const_data_ptr<float>(),
                       bias.const_data_ptr<float>(), static_cast<float>(eps),
                       output.mutable_data_ptr<float>() + at, kept == nullptr ? nullptr : kept + at,
                       deviations == nullptr ? nullptr : deviations + from);
    });
    context->save_for_backward({normalised, inverse, weight});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    const std::int64_t width = gradient.size(1);
    Tensor to_both = at::empty_like(gradient);
    at::parallel_for(0, gradient.size(0), 64, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t at = from * width;
      add_norm_backward(to - from, width, gradient.const_data_ptr<float>() + at,
                        saved[2].const_data_ptr<float>(), saved[0].const_data_ptr<float>() + at,
                        saved[1].const_data_ptr<float>() + from,
                        to_both.mutable_data_ptr<float>() + at);
    });
    return {to_both, to_both, Tensor(), Tensor(), Tensor()};
  }
};

class GeluFunction : public Function<GeluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor input = x.contiguous();
    Tensor output = at::empty_like(input);
    Tensor derivative = x.requires_grad() ? at::empty_like(input) : Tensor();
    float* const kept = derivative.defined() ? derivative.mutable_data_ptr<float>() : nullptr;
    at::parallel_for(0, input.numel(), 16384, [&](std::int64_t from, std::int64_t to) {
      gelu_forward(to - from, input.const_data_ptr<float>() + from,
                   output.mutable_data_ptr<float>() + from,
                   kept == nullptr ? nullptr : kept + from);
    });
    context->save_for_backward({derivative});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

}  // namespace

Tensor apply_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!is_float_on_cpu(x) || x.dim() != 2) return at::linear(x, weight, bias);
  // An undefined tensor is no argument of an autograd function; an absent one is.
  return LinearFunction::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

Tensor apply_linear(const Tensor& x, const ProductWeight& weight, const Tensor& bias) {
  const bool trained = weight.is_trained() || (bias.defined() && bias.requires_grad());
  if (trained || !is_float_on_cpu(x) || x.dim() != 2) {
    return apply_linear(x, weight.forward(), bias);
  }
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    return FrozenLinearFunction::apply(x, FrozenLinear{weight.forward(), weight.gradient(), bias});
  }
  return forward_product(x, weight.forward(), bias);
}

std::vector<Tensor> apply_linears(const Tensor& x, std::initializer_list<LinearLayer> layers) {
  const bool together = is_float_on_cpu(x) && x.dim() == 2 &&
                        std::all_of(layers.begin(), layers.end(), [](const LinearLayer& layer) {
                          return layer.weight.is_short() && !layer.weight.is_trained() &&
                                 !(layer.bias.defined() && layer.bias.requires_grad());
                        });
  if (!together) {
    std::vector<Tensor> made;
    for (const LinearLayer& layer : layers)
      made.push_back(apply_linear(x, layer.weight, layer.bias));
    return made;
  }
  const bool differentiated = at::GradMode::is_enabled() && x.requires_grad();
  FrozenLinears frozen;
  for (const LinearLayer& layer : layers) {
    frozen.forward.push_back(layer.weight.forward());
    frozen.biases.push_back(layer.bias);
    if (differentiated) frozen.gradient.push_back(layer.weight.gradient());
  }
  if (differentiated) return FrozenLinearsFunction::apply(x, frozen);
  return forward_products(x, frozen.forward, frozen.biases);
}

Tensor add_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm) {
  if (!is_float_on_cpu(a) || norm.weight.requires_grad()) return norm(a + b);
  return AddNormFunction::apply(a, b, norm.weight, norm.bias, norm.eps);
}

Tensor apply_gelu(const Tensor& x) {
  return is_float_on_cpu(x) ? GeluFunction::apply(x) : at::gelu(x);
}

}  // namespace petlab::trainer
