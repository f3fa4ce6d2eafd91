#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/exchange/incoming.h"
#include "results/store.h"

namespace petlab::orchestrator {

struct TakeOverOptions {
  /// What people call the other side: its database, runs folder or archive.
  std::string source;
  /// The database that belongs to the other runs folder; empty: there is none, or it is not looked
  /// at. What it has a result of and that folder has not is named.
  std::filesystem::path other_database = {};
};

/// Something of the other side that was not taken over, and why.
struct NotTaken {
  std::string trial;  ///< its id, or empty
  std::string text;
  bool operator==(const NotTaken&) const = default;
};

/// What take_over did.
struct TakenOver {
  std::int64_t trials = 0;  ///< of which attempts came
  std::int64_t attempts = 0;
  std::int64_t sweeps = 0;
  std::int64_t decisions = 0;
  std::int64_t remarks = 0;  ///< tags and notes
  std::int64_t files = 0;    ///< that attempts which were here lacked
  std::uintmax_t bytes = 0;
  std::int64_t same = 0;  ///< trials with a result on both sides, the same
  /// Results and sweeps that both sides have and that differ: what is here stays.
  std::vector<NotTaken> conflicts;
  /// What runs on one of the sides, or cannot be understood: to be taken over another time.
  std::vector<NotTaken> left;
};

/// Takes over what `other_runs` has of sweeps, attempts, decisions and remarks into the runs folder
/// of `incoming` and into `store`, each exactly once: an attempt is the same wherever its folder
/// lies, so repeating it changes nothing.
/// - A trial without a result here gets all attempts that are over there; where numbers are taken,
///   under the next. What was tried here stays.
/// - A trial with a result on both sides keeps the one here. Where their values, digests or builds
///   differ that is a conflict, and named. A result that was discarded here counts as none.
/// - A trial without a result on either side gets the other's attempts where it has none here.
/// - A trial that runs on one of the sides is left alone, and named.
/// Files are copied and read back by digest, apart from the runs folder's own; the folders of a
/// trial and what the database says of them come in one transaction. Killed at any moment and
/// repeated, it comes to the same. One at a time in a runs folder; a run that goes on there is not
/// disturbed. The other side is only read.
/// Throws Error where `other_runs` is the same folder, and as ingest_runs.
TakenOver take_over(results::Store& store, const Incoming& incoming,
                    const std::filesystem::path& other_runs, const TakeOverOptions& options);

}  // namespace petlab::orchestrator
