#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/table.h"

namespace petlab::reports {

/// Indices into Dataset::trials, ascending. Shared: of a million steps each is a row of all trials.
using TrialList = std::shared_ptr<const std::vector<std::size_t>>;

/// A row or a column after `each` was expanded: one line of the table.
struct AxisLine {
  std::string key;
  std::string group;
  std::string name;
  std::string published;       // key in the published table
  const Line* line = nullptr;  // of the definition, which must outlive this
  TrialList trials;
  Selection scores;  // conditions on split, step, name and task
};

/// The rows or columns of a table over `trials` (ascending). Under `each` they come in the order
/// of the trials, within a trial by task, then alphabetically, so that the order in which results
/// arrived is not seen. `where` is the report's own selection. The lines must outlive what comes of
/// them.
std::vector<AxisLine> expand(std::span<const Line> lines, const Dataset& data,
                             const std::vector<std::size_t>& trials, const Selection& where);

/// Splits the rows with `separate` so that no cell holds trials that differ in more than the seed.
std::vector<AxisLine> separated(std::vector<AxisLine> rows, const std::vector<AxisLine>& columns,
                                const Dataset& data);

/// The fields of the configuration, seed and task apart, in which trials of the same tasks differ.
std::vector<std::string> differing_fields(const Dataset& data,
                                          const std::vector<std::size_t>& trials);

/// The ids of these trials.
TrialIds trial_ids(const Dataset& data, const std::vector<std::size_t>& trials);

/// The elements of both; all ascending.
std::vector<std::size_t> common(const std::vector<std::size_t>& a,
                                const std::vector<std::size_t>& b);

}  // namespace petlab::reports
