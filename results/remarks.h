#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/remarks.h"
#include "results/store.h"

namespace petlab::results {

/// Of what a remark is: of a trial or, where that is empty, of a sweep.
struct RemarkSubject {
  std::string trial_id;
  std::string sweep;
};

/// Stores a remark in the batch's transaction; one that is there already, with its time, stays
/// once. Of a tag the latest says whether it is there, in whatever order they came. Throws
/// std::invalid_argument where there is no such trial or sweep, Error as Batch's methods.
void record_remark(Batch& batch, const RemarkSubject& subject, const protocol::Remark& remark);

/// What was remarked on one of them.
struct Remarks {
  std::vector<protocol::Remark> all;  ///< by time
  std::vector<std::string> tags;      ///< that it has now, sorted
};
/// Nothing for what is not known.
Remarks remarks_of(const Reader& reader, const RemarkSubject& subject);

/// Every tag that a trial or a sweep has, sorted, with the number of trials that `--where tag=…`
/// finds by it.
std::vector<std::pair<std::string, std::int64_t>> all_tags(const Reader& reader);

/// The tags of each trial that has some, by its id: its own and those of its sweeps, sorted.
std::map<std::string, std::vector<std::string>> tags_by_trial(const Reader& reader);

namespace internal {

/// The tables of remarks, where they are not there yet.
extern const char* const kRemarkTables;
/// The tags of the trial `t`, its own and those of its sweeps, one a row as `tag`: a SELECT.
extern const char* const kTagsOfTrial;

}  // namespace internal
}  // namespace petlab::results
