#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "exports/event_file.h"
#include "results/scores.h"
#include "results/store.h"

namespace petlab::exports {

/// What is exported, and from where.
struct TensorboardRequest {
  const results::Reader& reader;
  const results::ScoreReader& scores;  // of the same state of the database
  /// The runs folder; where attempts' events are there, values have the times at which they were
  /// reported, and there are curves of the loss.
  std::filesystem::path runs;
  std::vector<std::string> sweeps;  ///< names
  /// Hyperparameters of a trial, as the HParams page shows them.
  std::function<std::vector<Hparam>(const results::TrialRow&, const std::string& variant)> hparams;
};

/// What was written.
struct TensorboardRuns {
  std::int64_t runs = 0;
  std::int64_t values = 0;
  std::int64_t without_events = 0;  ///< runs whose times are those of their attempts
};

/// Writes an event file for each trial of the sweeps that reported anything, into
/// `folder`/SWEEP/VARIANT/TRIAL: the values of its result (of its last attempt without one) under
/// SPLIT/TASK/METRIC, its loss under train/loss, its configuration and how it ended for the HParams
/// page. A trial of several sweeps or variants is in each. Hidden trials are left out. Throws
/// base::Error where something cannot be written.
TensorboardRuns write_tensorboard(const std::filesystem::path& folder,
                                  const TensorboardRequest& request);

}  // namespace petlab::exports
