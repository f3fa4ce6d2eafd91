#pragma once

#include <filesystem>

#include "trainer/artifact/artifact.h"

namespace petlab::trainer {

/// Throws Error naming both digests where the backbone in `folder` is not the one that the artifact
/// was trained on. An artifact without a digest says nothing. `cache` remembers digests of files
/// (sweeps::FileDigests).
void require_own_backbone(const Artifact& artifact, const std::filesystem::path& folder,
                          const std::filesystem::path& cache);

}  // namespace petlab::trainer
