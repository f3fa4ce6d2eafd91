#include "metrics/selection.h"

#include <limits>
#include <vector>

#include "metrics/metric_table.h"
#include "tests/support/catch.h"

namespace petlab::metrics {
namespace {

TEST_CASE("a checkpoint's score is the mean over all metrics of all tasks", "[metrics]") {
  // One task has one metric, the other two. The mean of the tasks' means would be 0.65.
  const std::vector<SelectedMetric> metrics{{"matthews", 0.5}, {"accuracy", 0.9}, {"f1", 0.7}};
  CHECK(selection_score(metrics) == Approx(0.7).epsilon(1e-15));
  CHECK(selection_score(std::vector<SelectedMetric>{{"accuracy", 0.25}}) == 0.25);
  CHECK_FALSE(selection_score({}).has_value());
}

TEST_CASE("a checkpoint with an undefined metric has no score", "[metrics]") {
  const std::vector<SelectedMetric> metrics{{"accuracy", 0.9}, {"pearson", std::nullopt}};
  CHECK_FALSE(selection_score(metrics).has_value());
}

TEST_CASE("a metric for which lower is better counts with a negative sign", "[metrics]") {
  std::vector<SelectedMetric> metrics;
  double wanted = 0;
  for (const MetricRow& row : metric_table()) {
    metrics.push_back({row.name, 0.5});
    wanted += row.higher_is_better ? 0.5 : -0.5;
  }
  CHECK(selection_score(metrics) ==
        Approx(wanted / static_cast<double>(metrics.size())).epsilon(1e-15));
  CHECK(selection_score(std::vector<SelectedMetric>{{"ter", 40.0}}) == -40);
}

TEST_CASE("an unknown metric is refused", "[metrics]") {
  CHECK_THROWS_AS(selection_score(std::vector<SelectedMetric>{{"acuracy", 0.5}}),
                  std::invalid_argument);
}

TEST_CASE("the first of equal scores is kept, and an undefined one loses", "[metrics]") {
  CHECK(is_better_selection(0.2, 0.1));
  CHECK_FALSE(is_better_selection(0.2, 0.2));
  CHECK_FALSE(is_better_selection(0.1, 0.2));
  CHECK(is_better_selection(-std::numeric_limits<double>::infinity(), std::nullopt));
  CHECK_FALSE(is_better_selection(std::nullopt, -1.0));
  CHECK_FALSE(is_better_selection(std::nullopt, std::nullopt));
}

}  // namespace
}  // namespace petlab::metrics
