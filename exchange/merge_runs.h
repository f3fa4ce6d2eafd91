#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "exchange/incoming.h"
#include "results/store.h"

namespace petlab::exchange {

struct TakeOverOptions {
  /// The other side as shown to the user: its database, runs folder or archive.
  std::string source;
  /// The database of the other runs folder, or empty. Results that are only in this database are
  /// reported.
  std::filesystem::path other_database = {};
};

/// Something that was not merged, and why.
struct NotTaken {
  std::string trial;  ///< its id, or empty
  std::string text;
  bool operator==(const NotTaken&) const = default;
};

/// The result of merge_runs().
struct MergeResult {
  std::int64_t trials = 0;  ///< trials that gained attempts
  std::int64_t attempts = 0;
  std::int64_t sweeps = 0;
  std::int64_t decisions = 0;
  std::int64_t remarks = 0;  ///< tags and notes
  std::int64_t files = 0;    ///< missing files added to existing attempts
  std::uintmax_t bytes = 0;
  std::int64_t same = 0;  ///< trials with equal results on both sides
  /// Results and sweeps that differ between both sides. The local ones are kept.
  std::vector<NotTaken> conflicts;
  /// Trials that run on either side, or are unreadable. A later merge may include them.
  std::vector<NotTaken> left;
};

/// Merges the sweeps, attempts, decisions and remarks of `other_runs` into the runs folder of
/// `incoming` and into `store`. Attempts are identified by their start, not by their folder, so
/// merging again changes nothing.
/// - A trial with a result only on the other side gets all of its attempts, under new numbers if
///   theirs are in use. Local attempts stay.
/// - A trial with results on both sides keeps the local one. Different values, digests or builds
///   are reported as a conflict. A discarded local result does not count.
/// - A trial without a result on either side gets the other side's attempts if it has none here.
/// - A trial that runs on either side is skipped and reported.
///
/// Files are first copied outside of the trials' folders and verified by digest. A trial's folders
/// and database rows then appear in one transaction. A killed merge can be repeated. Only one merge
/// at a time may use a runs folder, but runs may continue in it. The other side is only read.
/// Throws Error if `other_runs` is the same folder, and as ingest_runs.
MergeResult merge_runs(results::Store& store, const Incoming& incoming,
                       const std::filesystem::path& other_runs, const TakeOverOptions& options);

}  // namespace petlab::exchange
