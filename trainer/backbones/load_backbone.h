#pragma once

#include <filesystem>
#include <memory>

#include "trainer/backbones/backbone.h"

namespace petlab::trainer {

/// Reads a Hugging Face folder with the model type of its config.json, a row of the table in
/// load_backbone.cpp. Throws Error as the kind's own load().
std::unique_ptr<const Backbone> load_backbone(const std::filesystem::path& folder,
                                              const Placement& placement = {});

}  // namespace petlab::trainer
