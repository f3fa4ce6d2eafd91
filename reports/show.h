#pragma once

#include "reports/report.h"

namespace petlab::reports {

/// The numbers that a report shows.
enum class Show {
  both,        ///< measured and published numbers side by side
  measured,    ///< only measured numbers
  published,   ///< only published numbers, in place of the measured ones
  difference,  ///< measured minus published, if both exist
};

/// Reduces the report to these numbers. Best and second best are determined among the shown ones.
Report shown(Report report, Show show);

}  // namespace petlab::reports
