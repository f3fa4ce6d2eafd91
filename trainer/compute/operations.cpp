#include "trainer/compute/operations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "trainer/compute/device_rows.h"
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
    if (context->needs_input_grad(1)) to_weight = weight_gradient_product(gradient, saved[0]);
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      to_bias = gradient.sum(0);
    }
    return {to_x, to_weight, to_bias};
  }
};

/// Multiplies float32 matrices in bfloat16. The tensors kept for backward are rounded once.
class ShortLinearFunction : public Function<ShortLinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    const Tensor short_x = x.to(at::kBFloat16);
    const Tensor short_weight = weight.to(at::kBFloat16);
    context->save_for_backward({weight.requires_grad() ? short_x : Tensor(), short_weight});
    context->saved_data["bias"] = bias.has_value();
    return widened(short_forward_product(short_x, short_weight), bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    const Tensor short_gradient = gradient.to(at::kBFloat16);
    Tensor to_x, to_weight, to_bias;
    if (context->needs_input_grad(0)) {
      to_x = widened(short_gradient_product(short_gradient, saved[1]), {});
    }
    if (context->needs_input_grad(1)) {
      to_weight = widened(weight_gradient_product(short_gradient, saved[0]), {});
    }
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      to_bias = gradient.sum(0);
    }
    return {to_x, to_weight, to_bias};
  }
};

/// Converts an undefined tensor, which autograd functions reject, to an absent one.
std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// A frozen linear layer: the matrices that its products read.
struct FrozenLinear {
  Tensor forward, gradient;
  Tensor bias;  // may be undefined
  bool is_short() const { return forward.scalar_type() == at::kBFloat16; }
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

/// Frozen bfloat16 layers with the same input.
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
    // Unused outputs have no gradient.
    std::vector<Tensor> of, by;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      of.push_back(gradients[i]);
      by.push_back(weights[i]);
    }
    return {of.empty() ? Tensor() : summed_input_gradient(of, by), Tensor()};
  }
};

/// Writes gelu of x to `output`, which may be x itself, and its derivative unless that is nullptr.
/// All are contiguous and of the same size.
void gelu_of(const Tensor& x, Tensor& output, Tensor* derivative) {
  float* const kept = derivative == nullptr ? nullptr : derivative->mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), 16384, [&](std::int64_t from, std::int64_t to) {
    gelu_forward(to - from, x.const_data_ptr<float>() + from,
                 output.mutable_data_ptr<float>() + from, kept == nullptr ? nullptr : kept + from);
  });
}

/// Two frozen layers of the same type, with gelu in between.
struct FrozenFeedForward {
  FrozenLinear inner, output;
};

class FrozenFeedForwardFunction : public Function<FrozenFeedForwardFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const FrozenFeedForward& layers) {
    Tensor derivative;
    const Tensor output = output_of(x, layers, &derivative);
    context->save_for_backward({derivative});
    context->saved_data["inner"] = layers.inner.gradient;
    context->saved_data["output"] = layers.output.gradient;
    return output;
  }

  /// `derivative` receives gelu's derivative, unless it is nullptr.
  static Tensor output_of(const Tensor& x, const FrozenFeedForward& layers, Tensor* derivative) {
    return layers.inner.is_short() ? short_output_of(x, layers, derivative)
                                   : float_output_of(x, layers, derivative);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor derivative = context->get_saved_variables()[0];
    const Tensor inner = context->saved_data["inner"].toTensor();
    const Tensor output = context->saved_data["output"].toTensor();
    const Tensor given = gradients[0].contiguous();
    const bool is_short = derivative.scalar_type() == at::kBFloat16;
    return {is_short ? short_gradient(given, derivative, inner, output)
                     : float_gradient(given, derivative, inner, output),
            Tensor()};
  }

 private:
  static Tensor short_output_of(const Tensor& x, const FrozenFeedForward& layers,
                                Tensor* derivative) {
    const Tensor projected = short_forward_product(x.to(at::kBFloat16), layers.inner.forward);
    const std::int64_t width = projected.size(1);
    Tensor activated = at::empty_like(projected);
    std::uint16_t* kept = nullptr;
    if (derivative != nullptr) {
      *derivative = at::empty_like(projected);
      kept = mutable_short_numbers(*derivative);
    }
    at::parallel_for(0, projected.size(0), 64, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t at = from * width;
      gelu_short_forward(to - from, width, short_numbers(projected) + at,
                         layers.inner.bias.const_data_ptr<float>(),
                         mutable_short_numbers(activated) + at,
                         kept == nullptr ? nullptr : kept + at);
    });
    return widened(short_forward_product(activated, layers.output.forward), layers.output.bias);
  }

  static Tensor short_gradient(const Tensor& given, const Tensor& derivative, const Tensor& inner,
                               const Tensor& output) {
    Tensor gradient = short_gradient_product(given.to(at::kBFloat16), output);
    at::parallel_for(0, gradient.numel(), 16384, [&](std::int64_t from, std::int64_t to) {
      multiply_short(to - from, short_numbers(derivative) + from,
                     mutable_short_numbers(gradient) + from);
    });
    return widened(short_gradient_product(gradient, inner), {});
  }

  // These work in the memory of a product's result, which nothing else uses.

  static Tensor float_output_of(const Tensor& x, const FrozenFeedForward& layers,
                                Tensor* derivative) {
    Tensor projected = forward_product(x, layers.inner.forward, layers.inner.bias).contiguous();
    if (derivative != nullptr) *derivative = at::empty_like(projected);
    gelu_of(projected, projected, derivative);
    return forward_product(projected, layers.output.forward, layers.output.bias);
  }

  static Tensor float_gradient(const Tensor& given, const Tensor& derivative, const Tensor& inner,
                               const Tensor& output) {
    Tensor gradient = input_gradient_product(given, output);
    gradient.mul_(derivative);
    return input_gradient_product(gradient, inner);
  }
};

/// The values that a norm over rows of `width` keeps for backward; undefined if not needed.
struct KeptNorm {
  Tensor normalised, inverse;

  KeptNorm(const Tensor& x, bool wanted) {
    if (!wanted) return;
    normalised = at::empty_like(x);
    inverse = at::empty({x.size(0)}, x.options());
  }
  float* rows_from(std::int64_t r) {
    return normalised.defined() ? normalised.mutable_data_ptr<float>() + r * normalised.size(1)
                                : nullptr;
  }
  float* inverse_from(std::int64_t r) {
    return inverse.defined() ? inverse.mutable_data_ptr<float>() + r : nullptr;
  }
};

class AddNormFunction : public Function<AddNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b,
                        const Tensor& weight, const Tensor& bias, double eps) {
    const Tensor x = a.contiguous();
    const Tensor y = b.contiguous();
    const std::int64_t width = x.size(1);
    Tensor output = at::empty_like(x);
    KeptNorm kept(x, a.requires_grad() || b.requires_grad());
    at::parallel_for(0, x.size(0), 64, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t at = from * width;
      add_norm_forward(
          to - from, width, x.const_data_ptr<float>() + at, y.const_data_ptr<float>() + at,
          weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), static_cast<float>(eps),
          output.mutable_data_ptr<float>() + at, kept.rows_from(from), kept.inverse_from(from));
    });
    context->save_for_backward({kept.normalised, kept.inverse, weight});
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

/// Processes one row at a time, while it is in the processor's cache.
class AddDroppedNormFunction : public Function<AddDroppedNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b,
                        const LayerNorm& norm, const DropoutPlace& place) {
    const Tensor x = a.contiguous();
    const Tensor y = b.contiguous();
    const std::int64_t width = x.size(1);
    Tensor output = at::empty_like(x);
    KeptNorm kept(x, a.requires_grad() || b.requires_grad());
    Tensor flags;
    if (a.requires_grad()) flags = at::empty(x.sizes(), x.options().dtype(at::kByte));
    std::uint8_t* const passed = flags.defined() ? flags.mutable_data_ptr<std::uint8_t>() : nullptr;
    at::parallel_for(0, x.size(0), 16, [&](std::int64_t from, std::int64_t to) {
      std::vector<float> multipliers(static_cast<std::size_t>(width)), dropped(multipliers);
      for (std::int64_t r = from; r < to; ++r) {
        const std::int64_t at = r * width;
        fill_row(place, r, multipliers);
        drop_forward(Dropped::itself, width, x.const_data_ptr<float>() + at, multipliers.data(),
                     nullptr, dropped.data(), passed == nullptr ? nullptr : passed + at);
        add_norm_forward(1, width, dropped.data(), y.const_data_ptr<float>() + at,
                         norm.weight.const_data_ptr<float>(), norm.bias.const_data_ptr<float>(),
                         static_cast<float>(norm.eps), output.mutable_data_ptr<float>() + at,
                         kept.rows_from(r), kept.inverse_from(r));
      }
    });
    context->save_for_backward({kept.normalised, kept.inverse, norm.weight, flags});
    context->saved_data["scale"] = static_cast<double>(dropout_scale(place.p));
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
    const Tensor gradient = gradients[0].contiguous();
    const std::int64_t width = gradient.size(1);
    Tensor to_x, to_residual = at::empty_like(gradient);
    if (context->needs_input_grad(0)) to_x = at::empty_like(gradient);
    at::parallel_for(0, gradient.size(0), 16, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t r = from; r < to; ++r) {
        const std::int64_t at = r * width;
        float* const to_sum = to_residual.mutable_data_ptr<float>() + at;
        add_norm_backward(1, width, gradient.const_data_ptr<float>() + at,
                          saved[2].const_data_ptr<float>(), saved[0].const_data_ptr<float>() + at,
                          saved[1].const_data_ptr<float>() + r, to_sum);
        if (!to_x.defined()) continue;
        drop_backward(width, to_sum, saved[3].const_data_ptr<std::uint8_t>() + at, scale,
                      to_x.mutable_data_ptr<float>() + at);
      }
    });
    return {to_x, to_residual, Tensor(), Tensor()};
  }
};

class GeluFunction : public Function<GeluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor input = x.contiguous();
    Tensor output = at::empty_like(input);
    Tensor derivative;
    if (x.requires_grad()) derivative = at::empty_like(input);
    gelu_of(input, output, derivative.defined() ? &derivative : nullptr);
    context->save_for_backward({derivative});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

/// Whether x is a float32 matrix on a CPU.
bool is_matrix(const Tensor& x) { return is_float_on_cpu(x) && x.dim() == 2; }

bool is_trained(const LinearLayer& layer) {
  return layer.weight.is_trained() || (layer.bias.defined() && layer.bias.requires_grad());
}

bool is_frozen_for(const Tensor& x, const LinearLayer& layer) {
  return is_matrix(x) && !is_trained(layer);
}

}  // namespace

Tensor apply_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool short_product) {
  if (!is_matrix(x)) return at::linear(x, weight, bias);
  return short_product ? ShortLinearFunction::apply(x, weight, if_defined(bias))
                       : LinearFunction::apply(x, weight, if_defined(bias));
}

Tensor apply_linear(const Tensor& x, const ProductWeight& weight, const Tensor& bias) {
  if (is_trained({weight, bias}) || !is_matrix(x)) {
    return apply_linear(x, weight.original(), bias, weight.is_short());
  }
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    return FrozenLinearFunction::apply(x, FrozenLinear{weight.forward(), weight.gradient(), bias});
  }
  return forward_product(x, weight.forward(), bias);
}

std::vector<Tensor> apply_linears(const Tensor& x, std::initializer_list<LinearLayer> layers) {
  const bool together = std::all_of(layers.begin(), layers.end(), [&](const LinearLayer& layer) {
    return is_frozen_for(x, layer) && layer.weight.is_short();
  });
  if (!together) {
    std::vector<Tensor> outputs;
    for (const LinearLayer& layer : layers)
      outputs.push_back(apply_linear(x, layer.weight, layer.bias));
    return outputs;
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

Tensor apply_gelu_between(const Tensor& x, const LinearLayer& inner, const LinearLayer& output) {
  const bool known = is_frozen_for(x, inner) && is_frozen_for(x, output) && inner.bias.defined() &&
                     inner.weight.is_short() == output.weight.is_short();
  if (!known) {
    return apply_linear(apply_gelu(apply_linear(x, inner.weight, inner.bias)), output.weight,
                        output.bias);
  }
  const bool differentiated = at::GradMode::is_enabled() && x.requires_grad();
  const auto frozen = [&](const LinearLayer& layer) {
    return FrozenLinear{layer.weight.forward(), differentiated ? layer.weight.gradient() : Tensor(),
                        layer.bias};
  };
  const FrozenFeedForward layers{frozen(inner), frozen(output)};
  if (differentiated) return FrozenFeedForwardFunction::apply(x, layers);
  return FrozenFeedForwardFunction::output_of(x, layers, nullptr);
}

Tensor add_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm) {
  if (const auto sum = device_normed(a, b, {}, norm, nullptr, false)) return sum->normed;
  if (!is_float_on_cpu(a) || norm.weight.requires_grad()) return norm(a + b);
  return AddNormFunction::apply(a, b, norm.weight, norm.bias, norm.eps);
}

Tensor add_norm(const Tensor& a, const Tensor& b, const Tensor& c, const LayerNorm& norm) {
  if (const auto sum = device_normed(a, c, b, norm, nullptr, false)) return sum->normed;
  return add_norm(a + b, c, norm);
}

Tensor add_dropped_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm,
                        const DropoutPlace& place) {
  if (const auto sum = device_normed(a, b, {}, norm, &place, false)) return sum->normed;
  if (!is_float_on_cpu(a) || norm.weight.requires_grad()) {
    return add_norm(drop(a, place), b, norm);
  }
  return AddDroppedNormFunction::apply(a, b, norm, place);
}

DroppedAndNormed dropped_and_normed(const Tensor& a, const Tensor& b, const LayerNorm& norm,
                                    const DropoutPlace* place) {
  if (place == nullptr) return {a, add_norm(a, b, norm)};
  if (const auto both = device_normed(a, b, {}, norm, place, true)) {
    return {both->dropped, both->normed};
  }
  const Tensor dropped = drop(a, *place);
  return {dropped, add_norm(dropped, b, norm)};
}

Tensor apply_gelu(const Tensor& x) {
  return is_float_on_cpu(x) ? GeluFunction::apply(x) : at::gelu(x);
}

}  // namespace petlab::trainer
