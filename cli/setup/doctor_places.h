#pragma once

#include "cli/setup/doctor_checks.h"
#include "sweeps/locations.h"

namespace petlab::cli {

/// Checks the places that petlab reads and writes: the database (which forks), the runs folder,
/// slot locks, backbones and data.
void look_at_places(const DoctorRequest& request, const sweeps::Environment& environment,
                    Diagnosis& diagnosis);

}  // namespace petlab::cli
