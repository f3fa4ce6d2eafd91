#include "trainer/compute/smoothed_loss.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trainer/compute/products.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// The losses of rows of logits, and the normalisers for their gradient.
struct Rows {
  Tensor losses;      // (rows)
  Tensor normaliser;  // (rows, 1)
};

Rows losses_of(const Tensor& logits, const Tensor& targets, double smoothing) {
  const Tensor normaliser = logits.logsumexp(1, true);
  const Tensor nll = normaliser - logits.gather(1, targets.unsqueeze(1));
  return {((1 - smoothing) * nll + smoothing * (normaliser - logits.mean(1, true))).squeeze(1),
          normaliser};
}

/// The gradient of each row's loss by its logits. It overwrites the logits if `in_place`.
Tensor gradient_of(const Tensor& logits, const Tensor& normaliser, const Tensor& targets,
                   double smoothing, bool in_place) {
  Tensor gradient = in_place ? logits.sub_(normaliser).exp_() : (logits - normaliser).exp_();
  gradient.sub_(smoothing / static_cast<double>(logits.size(1)));
  const Tensor places = targets.unsqueeze(1);
  gradient.scatter_add_(1, places, at::full(places.sizes(), smoothing - 1, gradient.options()));
  return gradient;
}

class SmoothedLossFunction : public Function<SmoothedLossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets,
                        double smoothing) {
    const Rows rows = losses_of(logits, targets, smoothing);
    context->save_for_backward({logits, targets, rows.normaliser});
    context->saved_data["smoothing"] = smoothing;
    return rows.losses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    Tensor gradient = gradient_of(saved[0], saved[2], saved[1],
                                  context->saved_data["smoothing"].toDouble(), /*in_place=*/false);
    gradient.mul_(gradients[0].unsqueeze(1));
    return {gradient, Tensor(), Tensor()};
  }
};

/// A frozen weight, in the form that the gradient of the states reads.
struct ReadByGradient {
  Tensor weight;
};

class ProjectedLossFunction : public Function<ProjectedLossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& states, const Tensor& weight,
                        const ReadByGradient& by_gradient, const Tensor& targets, double smoothing,
                        std::int64_t chunk) {
    const bool later = weight.requires_grad();
    Tensor of_states;
    if (states.requires_grad() && !later) of_states = at::empty_like(states);
    std::vector<Tensor> losses;
    each_chunk(
        states, weight, chunk, [&](std::int64_t from, std::int64_t size, const Tensor& logits) {
          const Tensor wanted = targets.narrow(0, from, size);
          const Rows rows = losses_of(logits, wanted, smoothing);
          losses.push_back(rows.losses);
          if (!of_states.defined()) return;
          const Tensor gradient = gradient_of(logits, rows.normaliser, wanted, smoothing, true);
          of_states.narrow(0, from, size)
              .copy_(input_gradient_product(gradient.to(weight.scalar_type()), by_gradient.weight));
        });
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["later"] = later;
    context->saved_data["chunk"] = chunk;
    if (later) {
      context->save_for_backward({states, weight, targets});
    } else {
      context->save_for_backward({of_states});
    }
    return at::cat(losses);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor outer = gradients[0].unsqueeze(1);
    if (!context->saved_data["later"].toBool()) {
      const Tensor& of_states = saved[0];
      return {of_states * outer.to(of_states.scalar_type()), {}, {}, {}, {}, {}};
    }
    const Tensor& states = saved[0];
    const Tensor& weight = saved[1];
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const std::int64_t chunk = context->saved_data["chunk"].toInt();
    Tensor of_states = at::empty_like(states);
    Tensor of_weight = at::zeros(weight.sizes(), states.options());
    each_chunk(
        states, weight, chunk, [&](std::int64_t from, std::int64_t size, const Tensor& logits) {
          const Tensor gradient = gradient_of(logits, logits.logsumexp(1, true),
                                              saved[2].narrow(0, from, size), smoothing, true)
                                      .mul_(outer.narrow(0, from, size))
                                      .to(weight.scalar_type());
          of_states.narrow(0, from, size).copy_(input_gradient_product(gradient, weight));
          if (states.scalar_type() == weight.scalar_type()) {
            of_weight.addmm_(gradient.t(), states.narrow(0, from, size));
          } else {
            of_weight += weight_gradient_product(
                gradient, states.narrow(0, from, size).to(weight.scalar_type()));
          }
        });
    return {of_states, of_weight.to(weight.scalar_type()), {}, {}, {}, {}};
  }

 private:
  /// visit(first row, rows, their logits in at least 32 bits)
  template <typename Visit>
  static void each_chunk(const Tensor& states, const Tensor& weight, std::int64_t chunk,
                         Visit visit) {
    const std::int64_t most = std::max<std::int64_t>(1, chunk / weight.size(0));
    for (std::int64_t from = 0; from < states.size(0); from += most) {
      const std::int64_t size = std::min(most, states.size(0) - from);
      Tensor logits = forward_product(states.narrow(0, from, size), weight, Tensor());
      if (logits.element_size() < 4) logits = logits.to(at::kFloat);
      visit(from, size, logits);
    }
  }
};

}  // namespace

Tensor smoothed_losses(const Tensor& logits, const Tensor& targets, double smoothing) {
  return SmoothedLossFunction::apply(logits, targets, smoothing);
}

Tensor projected_smoothed_losses(const Tensor& states, const ProductWeight& weight,
                                 const Tensor& targets, double smoothing, std::int64_t chunk) {
  const ReadByGradient by_gradient{weight.is_trained() ? Tensor() : weight.gradient()};
  return ProjectedLossFunction::apply(states, weight.forward(), by_gradient, targets, smoothing,
                                      chunk);
}

}  // namespace petlab::trainer
