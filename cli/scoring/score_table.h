#pragma once

#include <string>
#include <vector>

namespace petlab::cli {

/// Scores of several systems, as sacrebleu's command prints them.
struct ScoreTable {
  std::vector<std::string> header;              // System, then one per metric
  std::vector<std::vector<std::string>> cells;  // (systems, columns); may have several lines
};

/// Draws a grid around the cells; the first column is right-aligned, the others are centred.
std::string grid_of(const ScoreTable& table);

/// The same as a LaTeX booktabs tabular. Cells must have one line.
std::string booktabs_of(const ScoreTable& table);

}  // namespace petlab::cli
