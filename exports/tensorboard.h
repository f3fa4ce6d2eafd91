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

/// The data to export and its sources.
struct TensorboardRequest {
  const results::Reader& reader;
  const results::ScoreReader& scores;  // for the same state of the database
  /// The runs folder. If the events of an attempt exist, values get the times at which they were
  /// reported, and the loss is exported.
  std::filesystem::path runs;
  std::vector<std::string> sweeps;  ///< names
  /// The hyperparameters of a trial for the HParams page.
  std::function<std::vector<Hparam>(const results::TrialRow&, const std::string& variant)> hparams;
};

/// The result of an export.
struct TensorboardRuns {
  std::int64_t runs = 0;
  std::int64_t values = 0;
  std::int64_t without_events = 0;  ///< runs that use the times of their attempts
};

/// Writes an event file for each trial of the sweeps that reported anything, to
/// `folder`/SWEEP/VARIANT/TRIAL: the values of its result (else of its last attempt) as
/// SPLIT/TASK/METRIC, its loss as train/loss, and its configuration and outcome for the HParams
/// page. A trial of several sweeps or variants is written once for each. Hidden trials are omitted.
/// Throws base::Error if a file cannot be written.
TensorboardRuns write_tensorboard(const std::filesystem::path& folder,
                                  const TensorboardRequest& request);

}  // namespace petlab::exports
