#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/figure.h"

namespace petlab::reports {

/// The figure as one Vega-Lite specification (version 6, JSON) with its data inside: measured
/// points with their error bars, published ones hollow and dashed, lines across, tooltips, a legend
/// that filters. No text of the data is an expression.
std::string to_vega_lite(const Figure& figure);

/// A picture that is wanted.
struct Drawing {
  std::string specification;  // Vega-Lite
  std::string kind;           // svg, pdf, png
};

/// Where the set-up puts the tools of figures: a virtual environment with vl-convert, and the
/// script of pages.
std::filesystem::path figure_tools(const std::filesystem::path& home);

/// The pictures' bytes, in their order, all drawn by one run of vl-convert, without a browser and
/// without a network. Throws reports::NotDrawn where it is not in place or fails.
std::vector<std::string> draw(const std::vector<Drawing>& drawings,
                              const std::filesystem::path& home);

}  // namespace petlab::reports
