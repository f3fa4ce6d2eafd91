#pragma once

#include <filesystem>

#include "exports/run.h"

namespace petlab::exports {

/// Writes an event file for each run that reported anything, to `folder`/SWEEP/VARIANT/TRIAL: its
/// values, and its configuration and outcome for the HParams page.
class TensorboardWriter : public RunWriter {
 public:
  explicit TensorboardWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void write(const Run& run) override;

 private:
  std::filesystem::path folder_;
};

}  // namespace petlab::exports
