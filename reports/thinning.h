#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace petlab::reports {

/// Selects points of a curve that preserve its look: at most `most` (at least 4) indices,
/// ascending. They are the first, the last, and from equal sections between them those with the
/// lowest and the highest y, so that no spike is lost. Returns all if there are no more than
/// `most`.
std::vector<std::size_t> thinned(std::span<const double> y, std::size_t most);

}  // namespace petlab::reports
