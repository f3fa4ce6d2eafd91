#pragma once

#include <filesystem>
#include <memory>

#include "trainer/backbones/backbone.h"

namespace petlab::trainer {

/// Reads a Hugging Face folder with the model type of its config.json: RoBERTa, BERT or T5. Throws
/// Error as Encoder::load and T5::load.
std::unique_ptr<const Backbone> load_backbone(const std::filesystem::path& folder,
                                              const Placement& placement = {});

}  // namespace petlab::trainer
