#include "orchestrator/records/decide.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "orchestrator/host/error.h"
#include "protocol/trial_directory.h"
#include "results/decisions.h"

namespace petlab::orchestrator {

using protocol::Decision;

void store_decision(results::Batch& batch, const std::string& trial_id, const Decision& decision) {
  switch (decision.what) {
    case Decision::What::cancel:
    case Decision::What::uncancel:
      results::set_cancelled(batch, trial_id, decision.what == Decision::What::cancel);
      return;
    case Decision::What::retry:
      results::allow_retry(batch, trial_id, decision.after_attempt);
      results::set_cancelled(batch, trial_id, false);
      return;
    case Decision::What::rerun:
    case Decision::What::discard:
      results::renew(batch, trial_id,
                     {decision.after_attempt, decision.what == Decision::What::discard,
                      decision.why, decision.time});
      results::set_cancelled(batch, trial_id, false);
      return;
    case Decision::What::hide:
      results::set_hidden(batch, trial_id, results::Hiding{decision.why, decision.time});
      return;
    case Decision::What::unhide:
      results::set_hidden(batch, trial_id, std::nullopt);
      return;
  }
}

void decide(results::Store& store, const std::filesystem::path& runs, const std::string& trial_id,
            const Decision& decision) {
  // Before the file is touched, so that a mistyped id leaves nothing.
  if (!store.read().trial(trial_id)) {
    throw std::invalid_argument(
        fmt::format("there is no trial {} in {}", trial_id, store.file().string()));
  }
  const std::filesystem::path folder = protocol::trial_folder(runs, trial_id);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  protocol::append_decision(runs, trial_id, decision);
  results::Batch batch = store.begin();
  store_decision(batch, trial_id, decision);
  batch.commit();
}

}  // namespace petlab::orchestrator
