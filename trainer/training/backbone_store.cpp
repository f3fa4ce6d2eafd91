#include "trainer/training/backbone_store.h"

#include <limits>
#include <vector>

#include "trainer/backbones/backbone_kinds.h"
#include "trainer/compute/device_memory.h"
#include "trainer/compute/host_memory.h"
#include "trainer/data/token_rows.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

/// The size that counts for keeping a backbone. On a device, a trial may need all memory that is
/// reserved for the worker, so no other backbone fits.
std::int64_t kept_bytes(const Backbone& backbone) {
  constexpr std::int64_t kTooMuch = std::numeric_limits<std::int32_t>::max();
  if (!backbone.placement().device.is_cpu()) return kTooMuch << 20;
  std::int64_t bytes = 0;
  for (const auto& [name, weight] : backbone.weights()) {
    bytes += static_cast<std::int64_t>(weight.nbytes());
  }
  return bytes;
}

/// Frees backbones. Their memory must not count towards the next trial.
void drop(std::vector<std::shared_ptr<const LoadedBackbone>> backbones) {
  if (backbones.empty()) return;
  for (auto& backbone : backbones) {
    const at::Device device = backbone->model->placement().device;
    backbone.reset();
    begin_device_memory(device);
  }
  begin_host_memory();
}

}  // namespace

std::shared_ptr<const LoadedBackbone> BackboneStore::get(const std::filesystem::path& folder,
                                                         const Placement& placement) {
  const Key key{std::filesystem::absolute(folder).lexically_normal(),
                sweeps::backbone_digest(folder, digests_), placement};
  if (auto found = kept_.find(key)) {
    drop(kept_.remove_surplus());
    return found;
  }
  drop(kept_.make_room());
  auto loaded = std::make_shared<const LoadedBackbone>(
      LoadedBackbone{key.digest, load_backbone(folder, placement), load_tokenizer(folder)});
  require_rows(*loaded->tokenizer, loaded->model->shape(), folder);
  if (sweeps::backbone_digest(folder, digests_) != key.digest) {
    throw Error(folder.string() + ": the backbone's files changed while they were read");
  }
  kept_.add(key, loaded, kept_bytes(*loaded->model));
  return loaded;
}

}  // namespace petlab::trainer
