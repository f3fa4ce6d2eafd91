#pragma once

#include <string_view>

namespace petlab::fuzz {

// Each function takes one input, accepts what its reader refuses, and throws std::logic_error if a
// property does not hold.

/// The output of each of Slurm's programs is refused, or read without inventing jobs.
void slurm_text(std::string_view input);

}  // namespace petlab::fuzz
