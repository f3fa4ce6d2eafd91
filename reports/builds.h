#pragma once

#include <string>
#include <vector>

#include "results/store.h"

namespace petlab::reports {

/// A line for each build and machine that the results of these sweeps come from, that of the most
/// trials first: "petlab 2d8f6bf1a2b3 (clean), LibTorch 2.13.0, AMD EPYC 9V74: 12 trials". Nothing
/// for results of which nobody said where they come from. Throws results::Error for a database that
/// cannot be read.
std::vector<std::string> builds_of(const results::Reader& reader,
                                   const std::vector<std::string>& sweeps);

}  // namespace petlab::reports
