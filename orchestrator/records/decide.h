#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "protocol/decisions.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// Stores a user's decisions and remarks after they are written to their file. If another process
/// holds the database (results::DatabaseHeld), they are posted to its inbox instead (inbox.h).
/// Keeps references to its arguments.
class DecisionWriter {
 public:
  DecisionWriter(results::Store& store)  // NOLINT(google-explicit-constructor)
      : reader_(store.read()), database_(store.file()), store_(&store) {}
  DecisionWriter(const results::Reader& reader, std::filesystem::path database)
      : reader_(reader), database_(std::move(database)) {}

  const results::Reader& read() const { return reader_; }
  const std::filesystem::path& database() const { return database_; }
  /// nullptr if another process holds the database.
  results::Store* store() const { return store_; }

 private:
  const results::Reader& reader_;
  std::filesystem::path database_;
  results::Store* store_ = nullptr;
};

/// Appends the decision to the trial's decisions.jsonl, synced, then stores it in a separate
/// transaction or posts it. Throws std::invalid_argument if the database does not contain the
/// trial, and Error, base::Error and results::Error for files and the database.
void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::string& trial_id, const protocol::Decision& decision);
/// Does the same for many decisions, with one sync and one transaction. The database must contain
/// the trials.
void decide(const DecisionWriter& to, const std::filesystem::path& runs,
            const std::vector<std::pair<std::string, protocol::Decision>>& decisions);
/// The first half of decide(): posts the decisions and writes their files. Returns the post, to be
/// removed after the commit.
std::filesystem::path log_decisions(
    const std::filesystem::path& runs,
    const std::vector<std::pair<std::string, protocol::Decision>>& decisions);
/// The second half: stores all decisions of the trial's file, in its order. Storing them again has
/// no effect, and if several processes decide at once, the order of the lines counts, not that of
/// the commits: a rebuilt database says the same.
void store_decisions(results::Batch& batch, const std::string& trial_id,
                     const std::vector<protocol::Decision>& decisions);

}  // namespace petlab::orchestrator
