#pragma once

#include <vector>

#include "reports/table.h"

namespace petlab::reports {

/// By seed, then by trial.
void sort_samples(std::vector<Sample>& samples);

/// Scales the samples, and makes of them what they say together.
void summarise(Measured& measured, double scale);

/// The same of what is no score: where all trials agree there is no spread, and none is lacking.
void summarise_values(Measured& measured, double scale);

}  // namespace petlab::reports
