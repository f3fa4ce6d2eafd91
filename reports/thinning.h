#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace petlab::reports {

/// Which of a curve's points to draw so that it looks as it does with all of them: indices,
/// ascending, at most `most` (at least 4). The first, the last, and of equal stretches between them
/// those with the lowest and the highest y, so that no spike is lost. All where there are no more.
std::vector<std::size_t> thinned(std::span<const double> y, std::size_t most);

}  // namespace petlab::reports
