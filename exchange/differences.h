#pragma once

#include <string>
#include <vector>

#include "results/attempt.h"
#include "results/contents.h"

namespace petlab::exchange {

/// Describes the first difference between the values of two results of a trial; empty if they are
/// identical bit by bit. Both must be sorted as by ContentsReader::counted.
std::string difference_of_values(const std::vector<results::CountedValue>& here,
                                 const std::vector<results::CountedValue>& there);

/// Describes all other differences between two results: digests of backbone and data, numerics, the
/// worker, and the builds of petlab and the worker. Ignores the machines, which are expected to
/// differ.
std::vector<std::string> differences_of_making(const results::AttemptFacts& here,
                                               const results::Provenance& made_here,
                                               const results::AttemptFacts& there,
                                               const results::Provenance& made_there);

}  // namespace petlab::exchange
