#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/remarks.h"
#include "results/store.h"

namespace petlab::results {

/// The subject of a remark: a trial or, if trial_id is empty, a sweep.
struct RemarkSubject {
  std::string trial_id;
  std::string sweep;
};

/// Stores a remark in the batch's transaction; a remark with the same time is stored only once. The
/// latest tag or untag decides whether a tag is set, regardless of the order of storing. Throws
/// std::invalid_argument if the trial or sweep does not exist, and Error as Batch's methods.
void record_remark(Batch& batch, const RemarkSubject& subject, const protocol::Remark& remark);

/// The remarks on a trial or a sweep.
struct Remarks {
  std::vector<protocol::Remark> all;  ///< by time
  std::vector<std::string> tags;      ///< those currently set, sorted
};
/// Empty for an unknown subject.
Remarks remarks_of(const Reader& reader, const RemarkSubject& subject);

/// All tags of trials and sweeps, sorted, with the number of trials that `--where tag=…` selects.
std::vector<std::pair<std::string, std::int64_t>> all_tags(const Reader& reader);

/// The tags of trials by trial id, sorted, including those of their sweeps.
std::map<std::string, std::vector<std::string>> tags_by_trial(const Reader& reader);

namespace internal {

/// The SQL that creates the tables of remarks if they are missing.
extern const char* const kRemarkTables;
/// A SELECT of the tags of trial `t` as `tag`, including those of its sweeps.
extern const char* const kTagsOfTrial;

}  // namespace internal
}  // namespace petlab::results
