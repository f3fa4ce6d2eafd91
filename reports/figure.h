#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/definition.h"
#include "reports/table.h"

namespace petlab::reports {

/// A measured point: the trials with one x; its cell has their seeds.
struct FigurePoint {
  double x = 0;
  Cell cell;  // of Kind::number
};

/// A point printed in the paper.
struct PublishedPoint {
  double x = 0;
  double y = 0;
  std::string row;      // row of the published table
  std::string erratum;  // known error in it; empty: none
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
  Cell cell;  // of any kind; includes the published value if there is one
};

/// The title and properties of one axis.
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
  std::vector<std::string> notes;  // undrawn data: without x, or with x outside a log axis
};

/// The ends of a point's error bar; std::nullopt if it has none (one seed, Spread::none).
struct ErrorBar {
  double low = 0;
  double high = 0;
};
std::optional<ErrorBar> error_bar(const Measured& measured, Spread spread);

/// Number of points in the figure's curves, without published ones.
std::size_t measured_points(const Figure& figure);
/// Thins the figure to `most` measured points, but at least four per curve, keeping the look of the
/// curves. Adds no note.
Figure thinned(const Figure& figure, std::size_t most);

/// Computes a figure with validated names. Trials of a series with equal x form a point if x
/// belongs to their configuration or is their storage. For a measured x (train_seconds), trials of
/// one configuration form a point at the mean of their x. For x `step`, each step with a value of
/// the metric is a point. Problems go to CellMaker::problems.
Figure make_figure(const FigureSpec& spec, const Ingredients& from, CellMaker& maker);

}  // namespace petlab::reports
