#pragma once

#include <vector>

#include "reports/table.h"

namespace petlab::reports {

/// Sorts by seed, then by trial.
void sort_samples(std::vector<Sample>& samples);

/// Scales the samples and computes their summary.
void summarise(Measured& measured, double scale);

/// Summarises values other than scores: if all trials agree there is no spread, and no seed counts
/// as missing.
void summarise_values(Measured& measured, double scale);

}  // namespace petlab::reports
