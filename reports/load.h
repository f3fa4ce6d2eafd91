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

/// The sweeps of a report: `named` (from --sweep), else those of the definition, else the only one
/// of `known`, the sweeps of the database. Throws std::invalid_argument if a sweep is missing or
/// there are several to choose from, listing the known ones, and reports::Error if the database has
/// none. A definition with published numbers may name sweeps that the database does not have yet.
std::vector<std::string> choose_sweeps(const Definition& definition,
                                       const std::vector<std::string>& named,
                                       const std::filesystem::path& database,
                                       const std::vector<std::string>& known);

/// Reads the trials of the sweeps in the order of their plans, and the wanted part of their metrics
/// (results/scores.h). States are those of results/trial_state.h with the caller's liveness. A
/// trial is also stale if a later attempt of the same worker in these sweeps ran under another
/// numerics version or on other data of one of its tasks. Known words are the tasks, metrics and
/// splits of the whole database, and the metrics of metrics/metric_table.h. Throws results::Error
/// for an unreadable database.
Dataset load_dataset(const results::Reader& reader, const std::vector<std::string>& sweeps,
                     const Wanted& wanted, const results::IsAlive& alive);

}  // namespace petlab::reports
