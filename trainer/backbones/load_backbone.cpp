#include "trainer/backbones/load_backbone.h"

#include "trainer/backbones/encoder.h"
#include "trainer/backbones/t5.h"

namespace petlab::trainer {

std::unique_ptr<const Backbone> load_backbone(const std::filesystem::path& folder,
                                              const Placement& placement) {
  if (sweeps::read_backbone_shape(folder).decoder_layers > 0) {
    return std::make_unique<T5>(T5::load(folder, placement));
  }
  return std::make_unique<Encoder>(Encoder::load(folder, placement));
}

}  // namespace petlab::trainer
