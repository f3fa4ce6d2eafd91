#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// A trial of a sweep: the sweep's name, the variant (empty: none) and the trial's id.
using Member = std::tuple<std::string, std::string, std::string>;

/// What of a database some reports can show; the rest need not be read.
struct Wanted {
  /// The trials that the report is about; absent: all of its sweeps.
  std::optional<std::set<Member>> members = std::nullopt;
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
