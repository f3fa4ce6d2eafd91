#pragma once

#include <vector>

#include "orchestrator/exchange/check.h"
#include "results/contents.h"

namespace petlab::orchestrator {

/// The part of check() that looks at the bytes of files.
class FileCheck {
 public:
  FileCheck(const CheckedPlaces& places, CheckReport& report) : places_(places), report_(report) {}

  /// That each artifact which counts is there, and that each that is there is whole, belongs to its
  /// trial and has the size that its attempt said.
  void check_artifacts(const std::vector<results::ContentsReader::Artifact>& artifacts);
  /// That files of attempts that were taken over are what came.
  void check_notes();
  /// What a killed merge or import left.
  void look_for_leftovers();

 private:
  void check_artifact(const results::ContentsReader::Artifact& artifact,
                      const std::filesystem::path& file);
  const CheckedPlaces& places_;
  CheckReport& report_;
};

}  // namespace petlab::orchestrator
