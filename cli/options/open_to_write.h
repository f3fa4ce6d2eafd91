#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "orchestrator/records/decide.h"
#include "results/store.h"

namespace petlab::cli {

/// Opens a database to record a decision or remark. If another process holds it (on a network file
/// system), it is opened read-only and that process gets a message.
class OpenToDecide {
 public:
  explicit OpenToDecide(const std::filesystem::path& database);
  /// The writer is valid for the lifetime of this object.
  orchestrator::DecisionWriter writer();
  /// A note for the user after writing; empty if the database has the change.
  const std::string& delay() const { return delay_; }

 private:
  std::filesystem::path database_;
  std::optional<results::Store> store_;
  std::optional<results::Reader> reader_;
  std::string delay_;
};

}  // namespace petlab::cli
