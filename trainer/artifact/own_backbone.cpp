#include "trainer/artifact/own_backbone.h"

#include <fmt/format.h>

#include "sweeps/identity.h"
#include "trainer/files/error.h"

namespace petlab::trainer {

void require_own_backbone(const Artifact& artifact, const std::filesystem::path& folder,
                          const std::filesystem::path& cache) {
  if (artifact.backbone_digest.empty()) return;
  sweeps::FileDigests digests(cache);
  const std::string found = sweeps::backbone_digest(folder, digests);
  if (found == artifact.backbone_digest) return;
  throw Error(
      fmt::format("{}: the backbone's digest is {}, must be {}, which the artifact was trained on",
                  folder.string(), found, artifact.backbone_digest));
}

}  // namespace petlab::trainer
