#pragma once

#include <filesystem>

#include "exports/run.h"

namespace petlab::exports {

/// Writes a folder for each run as W&B does without a network (`offline-run-…`), which `wandb sync`
/// uploads. The sweep is the project, the variant the group. Undefined values are NaN. W&B has one
/// value of a metric per step: the last that was reported. Ids depend
/// only on names, so that a second upload meets the same runs.
class WandbWriter : public RunWriter {
 public:
  explicit WandbWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void write(const Run& run) override;

 private:
  std::filesystem::path folder_;
};

}  // namespace petlab::exports
