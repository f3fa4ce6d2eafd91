#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// The part of a database that some reports need; the rest is not read.
struct Wanted {
  /// Conditions on the trials of the sweeps.
  std::vector<results::Condition> where = {};
  /// Trial fields that the reports use; others may be missing.
  std::set<std::string> fields = {};
  /// True if a selection of the reports includes the metric.
  std::function<bool(const Series&)> series;
  /// True if the trial's metrics may be shown.
  std::function<bool(const Trial&)> trial;
  /// Read every step of a metric, not only the value that counts.
  bool every_step = false;
  /// Read the numbers of examples that each trial was trained and scored on.
  bool examples = false;
};

/// The data these definitions can show. They must outlive the result.
Wanted wanted_by(std::span<const Definition> definitions);

/// The data the selection can select. It must outlive the result.
Wanted wanted_by(const Selection& where, bool every_step);

}  // namespace petlab::reports
