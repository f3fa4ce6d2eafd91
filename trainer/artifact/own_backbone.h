#pragma once

#include <filesystem>

#include "trainer/artifact/artifact.h"

namespace petlab::trainer {

/// Throws Error, with both digests, if the backbone in `folder` is not the one that the artifact
/// was trained on. Accepts any backbone for an artifact without a digest. `cache` stores digests of
/// files (sweeps::FileDigests).
void require_own_backbone(const Artifact& artifact, const std::filesystem::path& folder,
                          const std::filesystem::path& cache);

}  // namespace petlab::trainer
