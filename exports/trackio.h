#pragma once

#include <filesystem>
#include <memory>

#include "exports/run.h"

namespace petlab::exports {

/// Writes the SQLite files of trackio, one project per sweep, as they are below TRACKIO_DIR. A row
/// has the values of one step, and a second value of a metric has another row. Undefined values are
/// NaN. A project's name is the sweep's, changed if trackio would read another one
/// (restricted_name).
class TrackioWriter : public RunWriter {
 public:
  explicit TrackioWriter(std::filesystem::path folder);
  ~TrackioWriter() override;
  void write(const Run& run) override;
  void close() override;

 private:
  class Project;
  std::filesystem::path folder_;
  std::unique_ptr<Project> project_;
};

}  // namespace petlab::exports
