#pragma once

#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/wanted.h"

namespace petlab::reports {

/// A request for a figure of any sweep without a definition.
struct CurveRequest {
  std::string x;                    // a field (module_bottleneck, module.bottleneck) or step
  std::string y;                    // a metric, or a field
  std::vector<std::string> series;  // fields; empty: variant, and task if there are several
  std::string split;                // empty: test, or for step validation, if they exist
  std::vector<Condition> where;     // selects trials, tasks and metrics
  bool log_x = false;
  bool log_y = false;
};

/// The data that load_dataset() must read for the request, which must outlive the result.
Wanted wanted_by(const CurveRequest& request);

/// The definition of the figure for these data. Throws std::invalid_argument for unknown fields and
/// metrics, naming the nearest known one.
Definition curve_definition(const CurveRequest& request, const Dataset& data);

}  // namespace petlab::reports
