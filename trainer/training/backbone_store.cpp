#include "trainer/training/backbone_store.h"

namespace petlab::trainer {

std::shared_ptr<const LoadedBackbone> BackboneStore::get(const std::filesystem::path& folder) {
  auto& kept = loaded_[std::filesystem::absolute(folder).lexically_normal()];
  if (!kept) {
    kept = std::make_shared<const LoadedBackbone>(
        LoadedBackbone{Encoder::load(folder), load_tokenizer(folder)});
  }
  return kept;
}

}  // namespace petlab::trainer
