#pragma once

#include "reports/report.h"

namespace petlab::reports {

/// Which numbers a report shows.
enum class Show {
  both,        ///< measured, published beside them
  measured,    ///< without the published ones
  published,   ///< the published ones alone, as if they had been measured
  difference,  ///< measured minus published, where there are both
};

/// The report with those numbers alone. Best and second best are those of what is shown.
Report shown(Report report, Show show);

}  // namespace petlab::reports
