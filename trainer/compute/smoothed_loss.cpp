#include "trainer/compute/smoothed_loss.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

class SmoothedLossFunction : public Function<SmoothedLossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets,
                        double smoothing) {
    const Tensor normaliser = logits.logsumexp(1, true);  // (rows, 1)
    const Tensor wanted = logits.gather(1, targets.unsqueeze(1));
    context->save_for_backward({logits, targets, normaliser});
    context->saved_data["smoothing"] = smoothing;
    const Tensor told = normaliser - wanted;
    return ((1 - smoothing) * told + smoothing * (normaliser - logits.mean(1, true))).squeeze(1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const Tensor& logits = saved[0];
    Tensor gradient = (logits - saved[2]).exp_();
    gradient.sub_(smoothing / static_cast<double>(logits.size(1)));
    const Tensor targets = saved[1].unsqueeze(1);
    gradient.scatter_add_(1, targets, at::full(targets.sizes(), smoothing - 1, gradient.options()));
    gradient.mul_(gradients[0].unsqueeze(1));
    return {gradient, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor smoothed_losses(const Tensor& logits, const Tensor& targets, double smoothing) {
  return SmoothedLossFunction::apply(logits, targets, smoothing);
}

}  // namespace petlab::trainer
