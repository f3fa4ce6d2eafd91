#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/figure.h"

namespace petlab::reports {

/// Converts a figure to one Vega-Lite specification (version 6, JSON) with inline data: measured
/// points with error bars, published ones hollow and dashed, horizontal lines, tooltips, a legend
/// that filters. Texts of the data are never evaluated as expressions.
std::string to_vega_lite(const Figure& figure);

/// A picture to draw.
struct Drawing {
  std::string specification;  // Vega-Lite
  std::string kind;           // svg, pdf, png
};

/// The folder where the set-up installs the tools for figures: a virtual environment with
/// vl-convert, and the script of pages.
std::filesystem::path figure_tools(const std::filesystem::path& home);

/// Draws pictures and returns their bytes in order. One run of vl-convert draws all, without
/// browser or network. Throws reports::NotDrawn if it is missing or fails.
std::vector<std::string> draw(const std::vector<Drawing>& drawings,
                              const std::filesystem::path& home);

}  // namespace petlab::reports
