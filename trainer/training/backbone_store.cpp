#include "trainer/training/backbone_store.h"

#include "trainer/backbones/load_backbone.h"
#include "trainer/files/error.h"

namespace petlab::trainer {

std::shared_ptr<const LoadedBackbone> BackboneStore::get(const std::filesystem::path& folder,
                                                         const Placement& placement) {
  auto& kept = loaded_[std::filesystem::absolute(folder).lexically_normal()];
  const std::string digest = sweeps::backbone_digest(folder, digests_);
  if (kept && kept->digest == digest && kept->model->placement() == placement) return kept;
  auto loaded = std::make_shared<const LoadedBackbone>(
      LoadedBackbone{digest, load_backbone(folder, placement), load_tokenizer(folder)});
  if (sweeps::backbone_digest(folder, digests_) != digest) {
    throw Error(folder.string() + ": the backbone's files changed while they were read");
  }
  return kept = std::move(loaded);
}

}  // namespace petlab::trainer
