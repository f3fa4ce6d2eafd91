#include "orchestrator/records/remark.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "base/files.h"
#include "orchestrator/host/error.h"
#include "orchestrator/records/inbox.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

std::filesystem::path remarks_file_of(const std::filesystem::path& runs,
                                      const results::RemarkSubject& subject) {
  return subject.trial_id.empty() ? protocol::sweep_remarks_file(runs, subject.sweep)
                                  : protocol::remarks_file(runs, subject.trial_id);
}

void remark(const DecisionWriter& to, const std::filesystem::path& runs,
            const results::RemarkSubject& subject, const std::vector<protocol::Remark>& remarks) {
  for (const protocol::Remark& one : remarks) {
    if (const std::string why = protocol::why_no_remark(one); !why.empty()) {
      throw std::invalid_argument(why);
    }
  }
  // Check first: a mistyped name must not create a file.
  const bool known = subject.trial_id.empty() ? to.read().sweep(subject.sweep).has_value()
                                              : to.read().trial(subject.trial_id).has_value();
  if (!known) {
    throw std::invalid_argument(fmt::format(
        "{} is not in {}",
        subject.trial_id.empty() ? "sweep " + subject.sweep : "trial " + subject.trial_id,
        to.database().string()));
  }
  const std::filesystem::path file = remarks_file_of(runs, subject);
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    throw Error(
        fmt::format("{}: cannot be created: {}", file.parent_path().string(), error.message()));
  }
  const std::filesystem::path post = post_to_inbox(runs, {subject});
  protocol::append_remarks(file, remarks);
  base::sync_folder(file.parent_path());
  base::sync_folder(runs);
  if (to.store() == nullptr) {
    post_to_inbox(runs, {subject});
    return;
  }
  results::Batch batch = to.store()->begin();
  for (const protocol::Remark& one : remarks) results::record_remark(batch, subject, one);
  batch.commit();
  std::filesystem::remove(post, error);
}

}  // namespace petlab::orchestrator
