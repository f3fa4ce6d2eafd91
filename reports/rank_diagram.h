#pragma once

#include <cstddef>
#include <vector>

#include "reports/ranks.h"

namespace petlab::reports {

/// A critical-difference diagram as in Demšar (2006) and autorank: the best rank on the left, the
/// better half of the names on the left side, and bars between the axis and the names. Heights are
/// pixels from the top.
struct RankDiagram {
  struct Bar {
    double from = 0;  // rank
    double to = 0;
    double y = 0;
    std::vector<std::size_t> members;  // variants, by average rank
  };
  struct Label {
    bool left = false;
    double y = 0;
  };
  double scale_y = 0;  // of the critical difference; only by Nemenyi's test
  double axis_y = 0;
  std::vector<Bar> bars;
  std::vector<Label> labels;  // by variant
  double height = 0;
  /// A group skips a variant with a rank in between, so bars need dots at their members.
  bool has_dots = false;
};

/// Lays out ranks (Ranks::has_ranks). Bars that do not touch share a height.
RankDiagram lay_out(const Ranks& ranks);

/// True if the diagram has a scale for the critical difference.
bool has_scale(const Ranks& ranks);

}  // namespace petlab::reports
