#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/wanted.h"
#include "results/is_alive.h"
#include "results/store.h"

namespace petlab::reports {

/// The sweeps that a report is about: `named` (of --sweep), else those of the definition, else the
/// only one of the database, which has `known`. Throws std::invalid_argument where it lacks one of
/// them or has several to choose from, listing those that it has, and reports::Error where it has
/// none. A definition with published numbers may name sweeps that the database does not have yet.
std::vector<std::string> choose_sweeps(const Definition& definition,
                                       const std::vector<std::string>& named,
                                       const std::filesystem::path& database,
                                       const std::vector<std::string>& known);

/// Reads the trials of the sweeps, in the order of their plans, and what is wanted of their metrics
/// (results/scores.h). A trial's state is that of
/// results/trial_state.h, with the caller's liveness; a trial is stale where a later attempt of the
/// same worker in these sweeps ran under another numerics version, or on other data of one of its
/// tasks. Known words are the tasks, metrics and splits of the whole database, and the metrics of
/// metrics/metric_table.h. Throws results::Error for a database that cannot be read.
Dataset load_dataset(const results::Reader& reader, const std::vector<std::string>& sweeps,
                     const Wanted& wanted, const results::IsAlive& alive);

}  // namespace petlab::reports
