#include "trainer/training/backbone_store.h"

#include "trainer/backbones/backbone_kinds.h"
#include "trainer/compute/device_memory.h"
#include "trainer/data/token_rows.h"
#include "trainer/files/error.h"

namespace petlab::trainer {

std::shared_ptr<const LoadedBackbone> BackboneStore::get(const std::filesystem::path& folder,
                                                         const Placement& placement) {
  const std::filesystem::path wanted = std::filesystem::absolute(folder).lexically_normal();
  const std::string digest = sweeps::backbone_digest(folder, digests_);
  if (last_) {
    const Placement before = last_->model->placement();
    if (folder_ == wanted && last_->digest == digest && before == placement) return last_;
    last_.reset();
    // Otherwise the dropped backbone's memory on the device would count towards the next trial.
    begin_device_memory(before.device);
  }
  auto loaded = std::make_shared<const LoadedBackbone>(
      LoadedBackbone{digest, load_backbone(folder, placement), load_tokenizer(folder)});
  require_rows(*loaded->tokenizer, loaded->model->shape(), folder);
  if (sweeps::backbone_digest(folder, digests_) != digest) {
    throw Error(folder.string() + ": the backbone's files changed while they were read");
  }
  folder_ = wanted;
  return last_ = std::move(loaded);
}

}  // namespace petlab::trainer
