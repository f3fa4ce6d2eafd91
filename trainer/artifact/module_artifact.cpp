#include "trainer/artifact/module_artifact.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "sweeps/backbone.h"
#include "sweeps/catalog.h"
#include "trainer/files/error.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {
namespace {

// A trial's own tensors: the first of the leading dimension K. A shared one has no layers either.
Tensor own(const Tensor& all, bool share) { return share ? all[0][0] : all[0]; }

/// The tensor's own memory wherever it can be had.
SharedFloats floats_of(const Tensor& tensor) {
  auto kept = std::make_shared<const Tensor>(tensor.detach().to(at::kFloat).contiguous());
  const std::span values(kept->const_data_ptr<float>(), static_cast<std::size_t>(kept->numel()));
  return {values, std::move(kept)};
}

std::vector<std::uint8_t> bits_of(const Tensor& mask) {
  const Tensor flat = mask.to(at::kByte).contiguous();
  const std::uint8_t* const data = flat.const_data_ptr<std::uint8_t>();
  return {data, data + flat.numel()};
}

ArtifactTensor stored(const std::string& name, const Tensor& tensor) {
  return {name, tensor.sizes().vec(), floats_of(tensor)};
}

std::string head_name(const std::string& parameter,
                      const std::vector<sweeps::TaskDeclaration>& tasks) {
  // head.0.dense.weight -> movie-polarity.dense.weight
  const std::size_t number = std::string("head.").size();
  const std::size_t dot = parameter.find('.', number);
  return tasks[std::stoul(parameter.substr(number, dot - number))].name + parameter.substr(dot);
}

template <typename Stored>
const Stored& find(const std::vector<Stored>& all, const std::string& name,
                   const std::vector<std::int64_t>& shape) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Stored& one) { return one.name == name; });
  if (found == all.end()) throw Error("the artifact has no tensor " + name);
  if (found->shape != shape) {
    throw Error("the artifact's tensor " + name + " has the shape " + shape_text(found->shape) +
                ", must be " + shape_text(shape));
  }
  return *found;
}

void fill(Tensor to, const ArtifactTensor& from) {
  if (to.numel() == 0) return;
  // LibTorch has no constant tensors; this one is only read.
  to.copy_(at::from_blob(const_cast<float*>(from.values.data()), to.sizes(), at::kFloat));
}

void fill_mask(Tensor to, const std::vector<std::uint8_t>& mask) {
  to.copy_(at::tensor(mask, at::kByte).view(to.sizes()));
}

}  // namespace

void store_model(TrialModel& model, const sweeps::TrialConfig& config,
                 const std::vector<sweeps::TaskDeclaration>& tasks, Artifact& artifact) {
  const sweeps::ModuleRow* const row = sweeps::find_module(config.module.kind);
  if (row != nullptr && row->family) {
    artifact.module = sweeps::module_storage(config, model.backbone().shape());
  }
  for (const sweeps::TaskDeclaration& task : tasks) artifact.labels[task.name] = task.classes;
  for (MaskedWeight* weight : model.module().stored()) {
    const WeightPlan& plan = weight->plan();
    const Tensor values = own(weight->values(), plan.share);
    if (!weight->masks().defined()) {
      artifact.values.push_back(stored(plan.name, values));
      continue;
    }
    const Tensor masks = own(weight->masks(), false);
    if (!plan.share && !weight->task_masks().defined()) {
      const SharedFloats kept = floats_of(values * masks);
      artifact.sparse.push_back(
          {plan.name, values.sizes().vec(), {kept.begin(), kept.end()}, bits_of(masks)});
      continue;
    }
    artifact.values.push_back(stored(plan.name, values));
    artifact.masks.push_back({plan.name + ".mask", masks.sizes().vec(), bits_of(masks)});
    if (weight->task_masks().defined()) {
      const Tensor task_masks = own(weight->task_masks(), false);
      artifact.masks.push_back(
          {plan.name + ".task_mask", task_masks.sizes().vec(), bits_of(task_masks)});
    }
  }
  const bool whole_backbone = model.module().stored().empty();
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.name.starts_with("head.")) {
      artifact.head.push_back(stored(head_name(parameter.name, tasks), own(parameter.value, true)));
    } else if (whole_backbone) {
      artifact.values.push_back(stored(parameter.name, parameter.value));
    }
  }
}

TrialModel load_model(const Artifact& artifact, const sweeps::TrialConfig& config,
                      const std::vector<sweeps::TaskDeclaration>& tasks, const Backbone& backbone) {
  const at::NoGradGuard no_grad;
  TrialModel model(config, tasks, backbone);
  for (MaskedWeight* weight : model.module().stored()) {
    const WeightPlan& plan = weight->plan();
    Tensor values = own(weight->values(), plan.share);
    if (!weight->masks().defined()) {
      fill(values, find(artifact.values, plan.name, values.sizes().vec()));
      continue;
    }
    Tensor masks = own(weight->masks(), false);
    if (!plan.share && !weight->task_masks().defined()) {
      const ArtifactSparse& sparse = find(artifact.sparse, plan.name, values.sizes().vec());
      values.copy_(at::tensor(sparse.values, at::kFloat).view(values.sizes()));
      fill_mask(masks, sparse.kept);
      continue;
    }
    fill(values, find(artifact.values, plan.name, values.sizes().vec()));
    fill_mask(masks, find(artifact.masks, plan.name + ".mask", masks.sizes().vec()).mask);
    if (weight->task_masks().defined()) {
      Tensor task_masks = own(weight->task_masks(), false);
      fill_mask(task_masks,
                find(artifact.masks, plan.name + ".task_mask", task_masks.sizes().vec()).mask);
    }
  }
  const bool whole_backbone = model.module().stored().empty();
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.name.starts_with("head.")) {
      Tensor value = own(parameter.value, true);
      fill(value, find(artifact.head, head_name(parameter.name, tasks), value.sizes().vec()));
    } else if (whole_backbone) {
      fill(parameter.value, find(artifact.values, parameter.name, parameter.value.sizes().vec()));
    }
  }
  model.freeze();
  return model;
}

}  // namespace petlab::trainer
