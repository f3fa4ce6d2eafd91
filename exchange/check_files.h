#pragma once

#include <vector>

#include "exchange/check.h"
#include "results/contents.h"

namespace petlab::exchange {

/// The part of check() that reads files.
class FileCheck {
 public:
  FileCheck(const CheckedPlaces& places, CheckReport& report) : places_(places), report_(report) {}

  /// Checks that each artifact of a result exists, and that each existing artifact is complete,
  /// belongs to its trial and has the size that its attempt reported.
  void check_artifacts(const std::vector<results::ContentsReader::Artifact>& artifacts);
  /// Checks that the files of merged attempts are unchanged.
  void check_notes();
  /// Reports the leftovers of a killed merge, import or garbage collection.
  void look_for_leftovers();

 private:
  void check_artifact(const results::ContentsReader::Artifact& artifact,
                      const std::filesystem::path& file);
  const CheckedPlaces& places_;
  CheckReport& report_;
};

}  // namespace petlab::exchange
