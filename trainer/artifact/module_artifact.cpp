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

/// Shares the tensor's memory if it is contiguous float32 on the CPU, else copies it.
SharedFloats floats_of(const Tensor& tensor) {
  auto kept = std::make_shared<const Tensor>(tensor.detach().to(at::kCPU, at::kFloat).contiguous());
  const std::span values(kept->const_data_ptr<float>(), static_cast<std::size_t>(kept->numel()));
  return {values, std::move(kept)};
}

std::vector<std::uint8_t> bits_of(const Tensor& mask) {
  const Tensor flat = mask.to(at::kCPU, at::kByte).contiguous();
  const std::uint8_t* const data = flat.const_data_ptr<std::uint8_t>();
  return {data, data + flat.numel()};
}

ArtifactTensor dense(const std::string& name, const Tensor& tensor) {
  return {name, tensor.sizes().vec(), floats_of(tensor)};
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
  if (row != nullptr && row->formula() != nullptr) {
    artifact.module = sweeps::module_storage(config, model.backbone().shape());
  }
  for (const sweeps::TaskDeclaration& task : tasks) artifact.labels[task.name] = task.classes;
  for (const StoredTensor& tensor : model.module().stored()) {
    if (!tensor.masks.defined()) {
      artifact.values.push_back(dense(tensor.name, tensor.values));
      continue;
    }
    if (tensor.only_what_is_kept) {
      const SharedFloats kept = floats_of(tensor.values * tensor.masks);
      artifact.sparse.push_back({tensor.name,
                                 tensor.values.sizes().vec(),
                                 {kept.begin(), kept.end()},
                                 bits_of(tensor.masks)});
      continue;
    }
    artifact.values.push_back(dense(tensor.name, tensor.values));
    const auto store_mask = [&](const char* end, const Tensor& masks) {
      artifact.masks.push_back({tensor.name + end, masks.sizes().vec(), bits_of(masks)});
    };
    store_mask(".mask", tensor.masks);
    if (tensor.task_masks.defined()) store_mask(".task_mask", tensor.task_masks);
  }
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const StoredTensor& tensor : model.objective(t).stored()) {
      artifact.head.push_back(dense(tasks[t].name + "." + tensor.name, tensor.values));
    }
  }
}

TrialModel load_model(const Artifact& artifact, const sweeps::TrialConfig& config,
                      const std::vector<sweeps::TaskDeclaration>& tasks,
                      const Pretrained& pretrained) {
  const at::NoGradGuard no_grad;
  TrialModel model(config, tasks, pretrained);
  for (const StoredTensor& tensor : model.module().stored()) {
    const std::vector<std::int64_t> shape = tensor.values.sizes().vec();
    if (!tensor.masks.defined()) {
      fill(tensor.values, find(artifact.values, tensor.name, shape));
      continue;
    }
    if (tensor.only_what_is_kept) {
      const ArtifactSparse& sparse = find(artifact.sparse, tensor.name, shape);
      tensor.values.copy_(at::tensor(sparse.values, at::kFloat).view(shape));
      fill_mask(tensor.masks, sparse.kept);
      continue;
    }
    fill(tensor.values, find(artifact.values, tensor.name, shape));
    const auto load_mask = [&](const char* end, const Tensor& masks) {
      fill_mask(masks, find(artifact.masks, tensor.name + end, masks.sizes().vec()).mask);
    };
    load_mask(".mask", tensor.masks);
    if (tensor.task_masks.defined()) load_mask(".task_mask", tensor.task_masks);
  }
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const StoredTensor& tensor : model.objective(t).stored()) {
      fill(tensor.values,
           find(artifact.head, tasks[t].name + "." + tensor.name, tensor.values.sizes().vec()));
    }
  }
  model.freeze();
  return model;
}

}  // namespace petlab::trainer
