#pragma once

#include <filesystem>
#include <string>

#include "exports/run.h"

namespace petlab::exports {

/// Writes the files of MLflow's file store (`mlruns`): an experiment per sweep, whose runs have
/// metrics with steps, parameters, tags, status and times. Undefined values are NaN. Names with
/// characters that MLflow refuses are changed (restricted_name); texts that are too long are cut.
/// Ids depend only on names, so that exporting twice gives the same files.
class MlflowWriter : public RunWriter {
 public:
  /// `place` is the folder's final absolute path, which MLflow stores with each run.
  MlflowWriter(std::filesystem::path folder, std::filesystem::path place)
      : folder_(std::move(folder)), place_(std::move(place)) {}
  void write(const Run& run) override;

 private:
  void write_experiment(const Run& run);

  std::filesystem::path folder_;
  std::filesystem::path place_;
  std::string sweep_;       // of the current experiment
  std::string experiment_;  // its id; empty: none yet
};

}  // namespace petlab::exports
