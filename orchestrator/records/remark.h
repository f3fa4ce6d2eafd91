#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/records/decide.h"
#include "protocol/remarks.h"
#include "results/remarks.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// The file with the remarks on a trial or a sweep.
std::filesystem::path remarks_file_of(const std::filesystem::path& runs,
                                      const results::RemarkSubject& subject);

/// Appends remarks to their file, synced, then stores them in a separate transaction or posts them.
/// Throws std::invalid_argument if the database does not contain the trial or sweep, or a text is
/// not valid, and Error, base::Error and results::Error for files and the database.
void remark(const DecisionWriter& to, const std::filesystem::path& runs,
            const results::RemarkSubject& subject, const std::vector<protocol::Remark>& remarks);

}  // namespace petlab::orchestrator
