#include "trainer/compute/device_rows.h"

#include <torch/custom_class.h>

#include <vector>

#include "trainer/compute/device_kernels.h"
#include "trainer/compute/dropout_draws.h"
#include "trainer/compute/kernels/arguments.h"

namespace petlab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// What forward and backward share, except tensors with gradients.
struct RowPlan : torch::CustomClassHolder {
  DeviceKernels* kernels = nullptr;
  RowArguments arguments{};
  std::vector<Tensor> held;  // keeps the memory that the arguments point to

  RowPlan(DeviceKernels& of, const Tensor& x, const DropoutPlace* place) : kernels(&of) {
    arguments.rows = x.size(0);
    arguments.width = x.size(1);
    if (place == nullptr || place->p <= 0) return;
    held = place->draws->set_arguments(arguments.dropout, place->of, {place->purpose, place->layer},
                                       place->p);
  }
  bool drops() const { return arguments.dropout.dropped != 0; }

  void launch(const char* name, at::ScalarType number, const RowArguments& with) const {
    kernels->launch("rows", name, {number, rows_size(with.width)},
                    {(with.rows + kRowsABlock - 1) / kRowsABlock, 1, 1, kRowsABlock * 32}, &with);
  }
};

const void* data(const Tensor& of) { return of.defined() ? of.const_data_ptr() : nullptr; }
void* mutable_data(Tensor& of) { return of.defined() ? of.mutable_data_ptr() : nullptr; }

Tensor dropped_by(const RowPlan& plan, const Tensor& x, const Tensor& y) {
  Tensor output = at::empty_like(x);
  RowArguments a = plan.arguments;
  a.x = data(x);
  a.y = data(y);
  a.output = output.mutable_data_ptr();
  plan.launch("rows_dropped", x.scalar_type(), a);
  return output;
}

const RowPlan& plan_of(AutogradContext* context,
                       c10::intrusive_ptr<c10::intrusive_ptr_target>& held) {
  held = context->saved_data["plan"].toCapsule();
  return static_cast<const RowPlan&>(*held);
}

class DroppedFunction : public Function<DroppedFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& y,
                        const c10::intrusive_ptr<RowPlan>& plan) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    context->saved_data["added"] = y.has_value();
    return dropped_by(*plan, x.contiguous(), y ? y->contiguous() : Tensor());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    c10::intrusive_ptr<c10::intrusive_ptr_target> held;
    const RowPlan& plan = plan_of(context, held);
    Tensor to_x;
    if (context->needs_input_grad(0)) to_x = dropped_by(plan, gradients[0].contiguous(), {});
    const bool added = context->saved_data["added"].toBool();
    return {to_x, added ? gradients[0] : Tensor(), Tensor()};
  }
};

class NormedFunction : public Function<NormedFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& given_x,
                               const Tensor& given_y, const std::optional<Tensor>& given_z,
                               const LayerNorm& norm, bool wants_dropped,
                               const c10::intrusive_ptr<RowPlan>& plan) {
    const Tensor x = given_x.contiguous(), y = given_y.contiguous();
    const Tensor z = given_z ? given_z->contiguous() : Tensor();
    Tensor output = at::empty_like(x), dropped, normalised, inverse;
    if (wants_dropped) dropped = at::empty_like(x);
    if (given_x.requires_grad() || given_y.requires_grad() ||
        (given_z && given_z->requires_grad())) {
      normalised = at::empty_like(x);
      const at::ScalarType sum = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
      inverse = at::empty({x.size(0)}, x.options().dtype(sum));
    }
    RowArguments a = plan->arguments;
    a.x = data(x);
    a.y = data(y);
    a.z = data(z);
    a.output = output.mutable_data_ptr();
    a.weight = data(norm.weight);
    a.bias = data(norm.bias);
    a.eps = norm.eps;
    a.dropped = mutable_data(dropped);
    a.normalised = mutable_data(normalised);
    a.inverse = mutable_data(inverse);
    plan->launch("rows_normed", x.scalar_type(), a);
    context->save_for_backward({normalised, inverse, norm.weight});
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    context->saved_data["three"] = z.defined();
    context->set_materialize_grads(false);
    return wants_dropped ? variable_list{output, dropped} : variable_list{output};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    c10::intrusive_ptr<c10::intrusive_ptr_target> held;
    const RowPlan& plan = plan_of(context, held);
    const variable_list saved = context->get_saved_variables();
    Tensor to_output, to_dropped;
    if (gradients[0].defined()) to_output = gradients[0].contiguous();
    if (gradients.size() > 1 && gradients[1].defined()) to_dropped = gradients[1].contiguous();
    Tensor to_y = at::empty_like(saved[0]), to_x;
    // Otherwise, the gradients are equal.
    const bool apart = plan.drops() || to_dropped.defined();
    if (apart && context->needs_input_grad(0)) to_x = at::empty_like(saved[0]);
    RowArguments a = plan.arguments;
    a.weight = data(saved[2]);
    a.normalised = const_cast<void*>(data(saved[0]));
    a.inverse = const_cast<void*>(data(saved[1]));
    a.output_gradient = data(to_output);
    a.dropped_gradient = data(to_dropped);
    a.x_gradient = mutable_data(to_x);
    a.y_gradient = to_y.mutable_data_ptr();
    plan.launch("rows_normed_backward", to_y.scalar_type(), a);
    const bool three = context->saved_data["three"].toBool();
    return {apart ? to_x : to_y, to_y, three ? to_y : Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

DeviceKernels* kernels_for(const Tensor& x, const DropoutPlace* place) {
  if (x.device().is_cpu() || x.dim() != 2) return nullptr;
  if (x.size(1) == 0 || rows_size(x.size(1)) > kMostRowsSize) return nullptr;
  if (place != nullptr && place->draws == nullptr) return nullptr;
  return device_kernels(x.device());
}

}  // namespace

std::optional<Tensor> device_dropped(const Tensor& x, const Tensor& y, const DropoutPlace& place) {
  DeviceKernels* const kernels = kernels_for(x, &place);
  if (kernels == nullptr) return std::nullopt;
  return DroppedFunction::apply(x, y.defined() ? std::optional(y) : std::nullopt,
                                c10::make_intrusive<RowPlan>(*kernels, x, &place));
}

std::optional<DeviceNormed> device_normed(const Tensor& x, const Tensor& y, const Tensor& z,
                                          const LayerNorm& norm, const DropoutPlace* place,
                                          bool wants_dropped) {
  DeviceKernels* const kernels = kernels_for(x, place);
  if (kernels == nullptr || norm.weight.requires_grad()) return std::nullopt;
  const variable_list outputs =
      NormedFunction::apply(x, y, z.defined() ? std::optional(z) : std::nullopt, norm,
                            wants_dropped, c10::make_intrusive<RowPlan>(*kernels, x, place));
  return DeviceNormed{outputs[0], wants_dropped ? outputs[1] : Tensor()};
}

}  // namespace petlab::trainer
