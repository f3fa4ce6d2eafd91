#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::protocol {

/// A decision about a trial, by a user or by a rule of its sweep: a line of runs/<trial
/// id>/decisions.jsonl.
struct Decision {
  enum class What {
    cancel,
    uncancel,
    retry,
    rerun,    ///< recompute results up to `after_attempt`, which count until then
    discard,  ///< likewise, but they no longer count
    hide,     ///< leave the trial out of reports and answers
    unhide,
    stop_early,  ///< the sweep's rule stops attempt `after_attempt`, and the trial
  };
  What what = What::cancel;
  std::int64_t after_attempt = 0;  // retry: failures up to this attempt no longer count
  double time = 0;
  std::string why = {};         // discard, hide: the user's reason; stop_early: the rule's numbers
  std::int64_t after_step = 0;  // stop_early: of the validation that decided
  bool operator==(const Decision&) const = default;
};

/// Appends the line; the trial's folder must exist. Without `synced`, the caller must sync. Throws
/// base::Error.
void append_decision(const std::filesystem::path& runs, const std::string& trial_id,
                     const Decision& decision, bool synced = true);
/// Appends "FILE:LINE: why" to `left_out` for each invalid line.
std::vector<Decision> read_decisions(const std::filesystem::path& runs, const std::string& trial_id,
                                     std::vector<std::string>* left_out = nullptr);

}  // namespace petlab::protocol
