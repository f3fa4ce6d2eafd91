#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "protocol/decisions.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// Where a user's decisions and remarks go after their file: into the database or, while another
/// process holds that (results::DatabaseHeld), to this process by its inbox (inbox.h). The
/// references must outlive it.
class DecisionWriter {
 public:
  DecisionWriter(results::Store& store)  // NOLINT(google-explicit-constructor)
      : reader_(store.read()), database_(store.file()), store_(&store) {}
  DecisionWriter(const results::Reader& reader, std::filesystem::path database)
      : reader_(reader), database_(std::move(database)) {}

  const results::Reader& read() const { return reader_; }
  const std::filesystem::path& database() const { return database_; }
  /// Null while another process holds the database.
  results::Store* store() const { return store_; }

 private:
  const results::Reader& reader_;
  std::filesystem::path database_;
  results::Store* store_ = nullptr;
};

/// Appends the decision to the trial's decisions.jsonl and syncs it, then stores it in a
/// transaction of its own, or posts it. Throws std::invalid_argument where the database has no such
/// trial, and Error, base::Error and results::Error for files and the database.
void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::string& trial_id, const protocol::Decision& decision);
/// Likewise many decisions on trials that the database has: one sync and one transaction for all.
void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::vector<std::pair<std::string, protocol::Decision>>& decisions);
/// The part of decide() that stores.
void store_decision(results::Batch& batch, const std::string& trial_id,
                    const protocol::Decision& decision);

}  // namespace petlab::orchestrator
