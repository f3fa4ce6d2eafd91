#include "trainer/modules/head.h"

#include "trainer/compute/operations.h"

namespace petlab::trainer {
namespace {

WeightPlan plan_of(std::uint64_t head, const std::string& name, std::vector<std::int64_t> shape) {
  WeightPlan plan;
  plan.name = "head." + std::to_string(head) + "." + name;
  plan.decayed = shape.size() > 1;
  plan.shape = std::move(shape);
  plan.share = true;
  return plan;
}

}  // namespace

Head::Head(std::int64_t d_model, std::int64_t outputs, std::uint64_t seed, std::uint64_t number,
           const Placement& placement)
    : dense_(plan_of(number, "dense.weight", {d_model, d_model}), placement),
      dense_bias_(plan_of(number, "dense.bias", {d_model}), placement),
      out_(plan_of(number, "out_proj.weight", {outputs, d_model}), placement),
      out_bias_(plan_of(number, "out_proj.bias", {outputs}), placement) {
  // Each task's head of a trial has another seed.
  const std::uint64_t task_seed = seed + (number << 32);
  // RoBERTa's initialisation of its classification head (initializer_range).
  init_normal(dense_.values(), task_seed, Init::head_dense, 0.02);
  init_normal(out_.values(), task_seed, Init::head_out, 0.02);
}

Tensor Head::forward(const Tensor& first, const PackedRows& rows, const Dropout* dropout) const {
  const auto drop = [&](const Tensor& x, Purpose purpose) {
    if (dropout == nullptr || dropout->hidden <= 0) return x;
    return trainer::drop(x, {*dropout, dropout->hidden, purpose, 0, rows.keys, rows.draws.get()});
  };
  const Tensor inner = at::tanh(apply_linear(drop(first, Purpose::head_input_dropout),
                                             dense_.layer(0), dense_bias_.layer(0)));
  return apply_linear(drop(inner, Purpose::head_output_dropout), out_.layer(0), out_bias_.layer(0));
}

DrawnPlaces Head::dropout_places() {
  return {{Purpose::head_input_dropout, 0}, {Purpose::head_output_dropout, 0}};
}

void Head::merge() {
  for (MaskedWeight* weight : {&dense_, &dense_bias_, &out_, &out_bias_}) weight->merge(0);
}

void Head::gather() {
  for (MaskedWeight* weight : {&dense_, &dense_bias_, &out_, &out_bias_}) weight->gather();
}

std::vector<Parameter> Head::parameters() {
  std::vector<Parameter> all;
  for (MaskedWeight* weight : {&dense_, &dense_bias_, &out_, &out_bias_}) {
    weight->append_parameters(all);
  }
  return all;
}

std::vector<StoredTensor> Head::stored() const {
  std::vector<StoredTensor> all;
  for (const MaskedWeight* weight : {&dense_, &dense_bias_, &out_, &out_bias_}) {
    all.push_back(weight->stored());
    // Removes the task's number from head.0.dense.weight, since it depends on the trial.
    std::string& name = all.back().name;
    name = name.substr(name.find('.', std::string("head.").size()) + 1);
  }
  return all;
}

Tensor summed_loss(sweeps::TaskKind kind, const Tensor& logits, const Tensor& targets) {
  if (kind == sweeps::TaskKind::regression) {
    return at::mse_loss(logits.squeeze(1), targets, at::Reduction::Sum);
  }
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

}  // namespace petlab::trainer
