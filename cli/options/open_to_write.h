#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "orchestrator/records/decide.h"
#include "results/store.h"

namespace petlab::cli {

/// Opens a database for what a user decides or remarks: while another process holds it (on a
/// network file system), it is opened to read, and that process is told.
class OpenToDecide {
 public:
  explicit OpenToDecide(const std::filesystem::path& database);
  /// Valid as long as this object.
  orchestrator::DecisionWriter writer();
  /// What to tell the user after writing; empty: it is in the database.
  const std::string& delay() const { return delay_; }

 private:
  std::filesystem::path database_;
  std::optional<results::Store> store_;
  std::optional<results::Reader> reader_;
  std::string delay_;
};

}  // namespace petlab::cli
