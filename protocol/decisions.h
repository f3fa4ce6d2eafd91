#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::protocol {

/// A decision of the user on a trial: a line of runs/<trial id>/decisions.jsonl.
struct Decision {
  enum class What {
    cancel,
    uncancel,
    retry,
    rerun,    ///< results up to `after_attempt` are to be made again, and count until they are
    discard,  ///< likewise, and count no more
    hide,     ///< out of reports and answers
    unhide,
  };
  What what = What::cancel;
  std::int64_t after_attempt = 0;  // retry: failures up to this attempt no longer count
  double time = 0;
  std::string why = {};  // discard, hide: what the user says of it
  bool operator==(const Decision&) const = default;
};

/// Appends the line; the trial's folder must exist. `synced`: to the disk, else the caller syncs.
/// Throws base::Error.
void append_decision(const std::filesystem::path& runs, const std::string& trial_id,
                     const Decision& decision, bool synced = true);
/// `left_out`, where given, gets "FILE:LINE: why" of each line that is not understood.
std::vector<Decision> read_decisions(const std::filesystem::path& runs, const std::string& trial_id,
                                     std::vector<std::string>* left_out = nullptr);

}  // namespace petlab::protocol
