#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/code_record.h"
#include "results/code.h"

namespace petlab::orchestrator {

/// The code of a worker or of an attempt.
struct KnownCode {
  results::Code parts;
  std::optional<protocol::CodeRecord> record;
};

/// The code that a worker runs: the record of its command, and what it says about itself (a JSON
/// object as in the event `started`; may be empty).
KnownCode code_now(const protocol::CodeRecord& record, const std::string& worker_said);

/// The members of an attempt's provenance for this code (protocol::Launch::code). `digest`: of the
/// record.
std::string launch_code(const KnownCode& code, const std::string& digest);

/// What differs between two codes, in words: "worker.py", "commit 1a2b3c4d5e6f, was 6f5e4d3c2b1a",
/// "numpy 2.0, was 1.0". What only one of them knows is no difference.
std::vector<std::string> code_changes(const KnownCode& then, const KnownCode& now);

/// How the code of each trial differs from the code now, by trial; empty if it is the same. Trials
/// without recorded code are missing.
using ChangedCode = std::map<std::string, std::vector<std::string>>;
/// `ids`: the trials to compare. Reads the records of their code in the runs folder.
ChangedCode changed_code(const results::Reader& reader, const std::filesystem::path& runs,
                         const std::vector<std::string>& ids, const KnownCode& now);

/// "3 of 6 trials ran other code than now: worker.py; numpy 2.0, was 1.0"; empty if none did.
std::string changed_code_text(const ChangedCode& changed);

/// At most eight of the changes, in one line.
std::string listed_changes(const std::vector<std::string>& changes);

}  // namespace petlab::orchestrator
