#pragma once

#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/wanted.h"

namespace petlab::reports {

/// A figure of any sweep without a definition.
struct CurveRequest {
  std::string x;                    // a field (module_bottleneck, module.bottleneck) or step
  std::string y;                    // a metric, or a field
  std::vector<std::string> series;  // fields; empty: variant, and task where there are several
  std::string split;                // empty: test, or for step validation, where there is such
  std::vector<Condition> where;     // of which trials, tasks and metrics
  bool log_x = false;
  bool log_y = false;
};

/// What load_dataset() has to read for it. The request must outlive it.
Wanted wanted_by(const CurveRequest& request);

/// The definition of that figure, for these data. Throws std::invalid_argument for fields and
/// metrics that are not known, naming the nearest known one.
Definition curve_definition(const CurveRequest& request, const Dataset& data);

}  // namespace petlab::reports
