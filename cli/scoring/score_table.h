#pragma once

#include <string>
#include <vector>

namespace petlab::cli {

/// Scores of several systems, as sacrebleu's command prints them.
struct ScoreTable {
  std::vector<std::string> header;              // System, and a metric each
  std::vector<std::vector<std::string>> cells;  // (systems, as many), of one line or several
};

/// A grid of lines around the cells; the first column to the right, the others in their middle.
std::string grid_of(const ScoreTable& table);

/// The same as a tabular of LaTeX's booktabs. Cells are of one line.
std::string booktabs_of(const ScoreTable& table);

}  // namespace petlab::cli
