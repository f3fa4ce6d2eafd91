#pragma once

#include <iosfwd>

#include "results/attempt.h"

namespace petlab::cli {

/// For each attempt of a trial: where it ran, its last checkpoint, how it failed, and the end of
/// its log.
void print_attempt_details(std::ostream& out, const results::TrialFacts& facts);

}  // namespace petlab::cli
