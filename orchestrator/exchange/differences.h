#pragma once

#include <string>
#include <vector>

#include "results/attempt.h"
#include "results/contents.h"

namespace petlab::orchestrator {

/// In what the first value differs that two results of one trial do not share, for people; empty
/// where all are the same to the bit. Both sorted as ContentsReader::counted gives them.
std::string difference_of_values(const std::vector<results::CountedValue>& here,
                                 const std::vector<results::CountedValue>& there);

/// What else tells two results apart, a text each: digests of backbone and data, numerics, the
/// worker, and which builds of petlab and of the worker made them. Machines differ as a matter of
/// course and are no part of it.
std::vector<std::string> differences_of_making(const results::AttemptFacts& here,
                                               const results::Provenance& made_here,
                                               const results::AttemptFacts& there,
                                               const results::Provenance& made_there);

}  // namespace petlab::orchestrator
