#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// What of a database some reports can show; the rest need not be read.
struct Wanted {
  /// Which trials of the sweeps the report is about.
  std::vector<results::Condition> where = {};
  /// Fields of trials that the reports name; others need not be known.
  std::set<std::string> fields = {};
  /// Whether the reports' own selections have that metric.
  std::function<bool(const Series&)> series;
  /// Whether the trial's metrics may be shown.
  std::function<bool(const Trial&)> trial;
  /// Every step at which a metric was reported, not only the value that counts.
  bool every_step = false;
  /// Of each trial on how many examples it was trained and scored.
  bool examples = false;
};

/// What these definitions can show. They must outlive it.
Wanted wanted_by(std::span<const Definition> definitions);

/// What the selection can select. It must outlive it.
Wanted wanted_by(const Selection& where, bool every_step);

}  // namespace petlab::reports
