#include "trainer/modules/masked_weight.h"

#include "metrics/storage.h"
#include "trainer/compute/device_kernels.h"
#include "trainer/compute/kernels/arguments.h"
#include "trainer/compute/random_stream.h"
#include "trainer/modules/mask_selection.h"

namespace petlab::trainer {
namespace {

using metrics::MaskKind;

std::vector<std::int64_t> with_front(std::int64_t a, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> all{a};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

template <typename T>
void select_each(const Tensor& scores, double sparsity_ratio, Tensor& masks) {
  const Tensor contiguous = scores.contiguous();
  const std::int64_t rows = scores.size(0);
  const std::int64_t n = scores.numel() / rows;
  const T* const from = contiguous.const_data_ptr<T>();
  T* const to = masks.mutable_data_ptr<T>();
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      select_mask(std::span<const T>(from + r * n, static_cast<std::size_t>(n)), sparsity_ratio,
                  std::span<T>(to + r * n, static_cast<std::size_t>(n)));
    }
  });
}

void select_by_kernel(DeviceKernels& kernels, const Tensor& scores, std::int64_t zeros,
                      Tensor& masks) {
  const std::int64_t rows = scores.size(0);
  const Tensor whole = scores.contiguous();
  const MaskArguments arguments{whole.const_data_ptr(), masks.mutable_data_ptr(),
                                scores.numel() / rows, zeros};
  kernels.launch("masks", "masks_selected", {scores.scalar_type()}, {rows, 1, 1, kMaskThreads},
                 &arguments);
}

/// Selects the same mask as select_mask, without waiting for the device.
void select_on_device(const Tensor& scores, double sparsity_ratio, Tensor& masks) {
  const std::int64_t n = scores.numel() / scores.size(0);
  const std::int64_t zeros = metrics::zeros_in_mask(sparsity_ratio, n);
  if (zeros <= 0) {
    masks.fill_(1);
    return;
  }
  DeviceKernels* const kernels = device_kernels(scores.device());
  if (kernels != nullptr) return select_by_kernel(*kernels, scores, zeros, masks);
  // (L, n): without their sign, numbers have the same order as their bits, and NaN is above all.
  const at::ScalarType bits = scores.scalar_type() == at::kDouble ? at::kLong : at::kInt;
  const Tensor magnitudes = scores.abs().view(bits).flatten(1);
  const Tensor limit = std::get<0>(magnitudes.kthvalue(zeros, 1, /*keepdim=*/true));
  const Tensor equal = magnitudes == limit;
  const Tensor ties = zeros - (magnitudes < limit).sum(1, /*keepdim=*/true);
  const Tensor above = magnitudes > limit;
  masks.copy_(above.logical_or(equal.logical_and(equal.cumsum(1) > ties)).view_as(masks));
}

}  // namespace

MaskedWeight::MaskedWeight(WeightPlan plan, const Placement& placement) : plan_(std::move(plan)) {
  const std::int64_t prototypes = plan_.share ? 1 : plan_.layers;
  const at::TensorOptions options = placement.trained();
  values_ = at::zeros(with_front(prototypes, plan_.shape), options);
  values_gradient_ = at::zeros_like(values_);
  merged_apart_ = plan_.mask != MaskKind::none || placement.compute != placement.master;
  if (!merged_apart_) {
    // The leaves share the prototype's memory, so the next step sees what the optimizer writes.
    merged_ = values_;
  } else {
    const std::int64_t merged_count = plan_.mask == MaskKind::none ? prototypes : plan_.layers;
    merged_ = at::zeros(with_front(merged_count, plan_.shape), placement.computing());
  }
  if (plan_.mask != MaskKind::none) {
    const auto all = with_front(plan_.layers, plan_.shape);
    masks_ = at::ones(all, options);
    if (plan_.mask == MaskKind::learned) {
      scores_ = at::zeros(all, options);
      scores_gradient_ = at::zeros(all, options);
    }
    if (plan_.tasks > 0) {
      task_masks_ = at::ones(with_front(plan_.tasks, plan_.shape), options);
      if (plan_.mask == MaskKind::learned) {
        task_scores_ = at::zeros_like(task_masks_);
        task_scores_gradient_ = at::zeros_like(task_masks_);
      }
    }
  }
  for (std::int64_t l = 0; l < merged_.size(0); ++l) {
    leaves_.push_back(merged_.select(0, l).detach().requires_grad_(true));
    // Otherwise, backward creates it.
    if (!merged_apart_) leaves_.back().mutable_grad() = values_gradient_.select(0, l);
  }
}

void MaskedWeight::draw_random_masks(std::uint64_t seed, std::uint64_t parameter) {
  std::int64_t n = 1;
  for (const std::int64_t size : plan_.shape) n *= size;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(n));
  const auto draw = [&](Purpose purpose, const Tensor& masks) {
    for (std::int64_t i = 0; i < masks.size(0); ++i) {
      fill_random_mask(purpose, seed, parameter, static_cast<std::uint64_t>(i),
                       plan_.sparsity_ratio, mask);
      masks.select(0, i).copy_(at::from_blob(mask.data(), plan_.shape, at::kByte));
    }
  };
  draw(Purpose::random_mask, masks_);
  if (task_masks_.defined()) draw(Purpose::random_task_mask, task_masks_);
}

void MaskedWeight::derive(const Tensor& scores, Tensor& masks) const {
  if (!scores.device().is_cpu()) {
    select_on_device(scores, plan_.sparsity_ratio, masks);
  } else if (scores.scalar_type() == at::kDouble) {
    select_each<double>(scores, plan_.sparsity_ratio, masks);
  } else {
    select_each<float>(scores, plan_.sparsity_ratio, masks);
  }
}

Tensor MaskedWeight::hybrid() const {
  if (!task_masks_.defined()) return masks_;
  const Tensor task = task_masks_.select(0, task_);
  switch (plan_.combine) {
    case MaskCombination::or_:
      return 1 - (1 - masks_) * (1 - task);
    case MaskCombination::and_:
      return masks_ * task;
    case MaskCombination::add:
      return masks_ + task;
  }
  throw std::logic_error("a combination without a formula");
}

void MaskedWeight::merge(std::int64_t task, bool frozen_masks) {
  const at::NoGradGuard no_grad;
  task_ = task;
  if (!merged_apart_) return;
  if (plan_.mask == MaskKind::none) {
    merged_.copy_(values_);
    return;
  }
  if (plan_.mask == MaskKind::learned && !frozen_masks) {
    derive(scores_, masks_);
    if (task_scores_.defined()) derive(task_scores_, task_masks_);
  }
  at::mul_out(merged_, values_, hybrid());
}

void MaskedWeight::gather() {
  const at::NoGradGuard no_grad;
  if (!merged_apart_) return;
  std::vector<Tensor> of_layers;
  for (const Tensor& leaf : leaves_) {
    of_layers.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
    leaf.mutable_grad() = Tensor();
  }
  const Tensor gradient = at::stack(of_layers).to(values_.scalar_type());  // (L or P, shape…)
  of_layers.clear();
  if (plan_.mask == MaskKind::none) {
    values_gradient_ += gradient;
    return;
  }
  const Tensor to_values = gradient * hybrid();
  values_gradient_ += plan_.share ? to_values.sum(0, true) : to_values;
  if (plan_.mask == MaskKind::learned) {
    const Tensor to_mask = gradient * values_;
    if (!task_masks_.defined()) {
      scores_gradient_.addcmul_(to_mask, scores_.sign());
    } else {
      const Tensor task = task_masks_.select(0, task_);
      Tensor to_layer = to_mask;
      Tensor to_task = to_mask;
      if (plan_.combine == MaskCombination::or_) {
        to_layer = to_mask * (1 - task);
        to_task = to_mask * (1 - masks_);
      } else if (plan_.combine == MaskCombination::and_) {
        to_layer = to_mask * task;
        to_task = to_mask * masks_;
      }
      scores_gradient_.addcmul_(to_layer, scores_.sign());
      task_scores_gradient_.select(0, task_).addcmul_(to_task.sum(0),
                                                      task_scores_.select(0, task_).sign());
    }
  }
}

StoredTensor MaskedWeight::stored() const {
  StoredTensor stored{plan_.name, values_};
  if (plan_.share) stored.values = stored.values[0];
  if (masks_.defined()) stored.masks = masks_;
  if (task_masks_.defined()) stored.task_masks = task_masks_;
  stored.only_what_is_kept = masks_.defined() && !plan_.share && !task_masks_.defined();
  return stored;
}

void MaskedWeight::append_parameters(std::vector<Parameter>& parameters) {
  if (plan_.trained) {
    parameters.push_back({plan_.name, values_, values_gradient_, Rate::module, plan_.decayed});
  }
  if (scores_.defined()) {
    parameters.push_back({plan_.name + ".scores", scores_, scores_gradient_, Rate::scores, true});
  }
  if (task_scores_.defined()) {
    Parameter scores{plan_.name + ".task_scores", task_scores_, task_scores_gradient_, Rate::scores,
                     true};
    scores.by_task = true;
    parameters.push_back(std::move(scores));
  }
}

}  // namespace petlab::trainer
