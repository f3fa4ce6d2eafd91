#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/definition.h"
#include "reports/table.h"

namespace petlab::reports {

/// A measured point: trials with one x, their seeds in the cell.
struct FigurePoint {
  double x = 0;
  Cell cell;  // of Kind::number
};

/// A point that the paper prints.
struct PublishedPoint {
  double x = 0;
  double y = 0;
  std::string row;      // of the published table
  std::string erratum;  // what is known to be wrong with it; empty: nothing
};

/// A curve: points by ascending x.
struct FigureSeries {
  std::string key;
  std::string name;
  std::vector<FigurePoint> points;
  std::vector<PublishedPoint> published;
};

/// A line across the figure.
struct HorizontalLine {
  std::string key;
  std::string name;
  Cell cell;  // of any kind; with a published value where there is one
};

/// What stands at an axis.
struct AxisTitle {
  std::string name;
  bool log = false;
};

/// A finished figure, ready to be rendered.
struct Figure {
  std::string key;    // FigureSpec::key
  std::string title;  // FigureSpec::title
  AxisTitle x;
  AxisTitle y;
  std::vector<FigureSeries> series;
  std::vector<HorizontalLine> horizontal;
  Spread errors = Spread::deviation;
  std::optional<int> digits;  // decimals of y
  std::vector<std::string> published_titles;
  std::vector<std::string> notes;  // what cannot be drawn: no x, x that a log axis has no place for
};

/// The ends of a point's error bar; std::nullopt where there is none (one seed, Spread::none).
struct ErrorBar {
  double low = 0;
  double high = 0;
};
std::optional<ErrorBar> error_bar(const Measured& measured, Spread spread);

/// How many points the curves of a figure have, published ones aside.
std::size_t measured_points(const Figure& figure);
/// The figure with at most `most` measured points, or four a curve where that is more: thinned so
/// that the curves look as they did. Nothing is noted.
Figure thinned(const Figure& figure, std::size_t most);

/// Computes a figure whose names were checked. A series' trials with equal x are one point where x
/// belongs to their configuration or is their storage; where it was measured (train_seconds), those
/// of one configuration are, at the mean of their x. With x `step`, each step at which the metric
/// was reported is a point. What is wrong with its points is in CellMaker::problems.
Figure make_figure(const FigureSpec& spec, const Ingredients& from, CellMaker& maker);

}  // namespace petlab::reports
