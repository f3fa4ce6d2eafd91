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

/// Indices into Dataset::trials, ascending. Shared, because each of a million steps can be a row
/// over all trials.
using TrialList = std::shared_ptr<const std::vector<std::size_t>>;

/// A line of the table: a row or column after expanding `each`.
struct AxisLine {
  std::string key;
  std::string group;
  std::string name;
  std::string published;       // key in the published table
  const Line* line = nullptr;  // in the definition, which must outlive this
  TrialList trials;
  Selection scores;  // conditions on split, step, name and task
};

/// The rows or columns of a table over `trials` (ascending). Lines from `each` follow the order of
/// the trials, within a trial by task, then alphabetically, regardless of the order in which
/// results arrived. `where` is the report's selection. `lines` must outlive the result.
std::vector<AxisLine> expand(std::span<const Line> lines, const Dataset& data,
                             const std::vector<std::size_t>& trials, const Selection& where);

/// Splits the rows with `separate` so that trials of a cell differ only in their seeds.
std::vector<AxisLine> separated(std::vector<AxisLine> rows, const std::vector<AxisLine>& columns,
                                const Dataset& data);

/// The configuration fields, except seed and task, in which trials of the same tasks differ.
std::vector<std::string> differing_fields(const Dataset& data,
                                          const std::vector<std::size_t>& trials);

/// The ids of `trials`.
TrialIds trial_ids(const Dataset& data, const std::vector<std::size_t>& trials);

/// The intersection; all lists are ascending.
std::vector<std::size_t> common(const std::vector<std::size_t>& a,
                                const std::vector<std::size_t>& b);

}  // namespace petlab::reports
