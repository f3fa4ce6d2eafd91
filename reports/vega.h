#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/figure.h"
#include "reports/ranks.h"
#include "reports/report.h"

namespace petlab::reports {

/// Converts a figure to one Vega-Lite specification (version 6, JSON) with inline data: measured
/// points with error bars, published ones hollow and dashed, horizontal lines, tooltips, a legend
/// that filters. Texts of the data are never evaluated as expressions.
std::string to_vega_lite(const Figure& figure);
/// Converts ranks to the specification of their critical-difference diagram, or of the reason why
/// there is none. `usermeta.beside` is the room in pixels that names need at both sides.
std::string to_vega_lite(const Ranks& ranks);
/// The specification of a section other than a table.
std::string specification_of(const Section& section);

/// A picture to draw.
struct Drawing {
  std::string specification;  // Vega-Lite
  std::string kind;           // svg, pdf, png
};

/// Draws pictures and returns their bytes in order. One run of vl-convert in the Python of
/// petlab's tools (base/tools_python.h) draws all, without browser or network. Throws
/// reports::NotDrawn if it is missing or fails.
std::vector<std::string> draw(const std::vector<Drawing>& drawings,
                              const std::filesystem::path& home);

/// Vega and the function that draws figures with it in a browser.
struct PageScript {
  std::string text;     // JavaScript; empty if it cannot be created
  std::string missing;  // then why, and the fix
};

/// The script of pages. vl-convert creates it once, and the folder `home` keeps it. Creates it anew
/// each time if `home` cannot be written. This process keeps the result, also a failure.
const PageScript& page_script(const std::filesystem::path& home);

}  // namespace petlab::reports
