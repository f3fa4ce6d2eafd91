#pragma once

#include <string>
#include <vector>

#include "results/store.h"

namespace petlab::reports {

/// One line per build and machine that produced results of these sweeps, by descending number of
/// trials: "petlab 2d8f6bf1a2b3 (clean), LibTorch 2.13.0, AMD EPYC 9V74: 12 trials". Results
/// without provenance are omitted. Throws results::Error for an unreadable database.
std::vector<std::string> builds_of(const results::Reader& reader,
                                   const std::vector<std::string>& sweeps);

}  // namespace petlab::reports
