#include "metrics/glue.h"

namespace petlab::metrics {
namespace {

constexpr std::array<GlueTask, 8> kTasks = {{
    {"cola", 2, {"matthews", ""}},
    {"sst2", 2, {"accuracy", ""}},
    {"mrpc", 2, {"accuracy", "f1"}},
    {"qqp", 2, {"accuracy", "f1"}},
    {"stsb", 1, {"pearson", "spearman"}},
    {"mnli", 3, {"accuracy", ""}},
    {"qnli", 2, {"accuracy", ""}},
    {"rte", 2, {"accuracy", ""}},
}};

constexpr auto kColumns = [] {
  std::array<GlueColumn, kGlueColumns> columns{};
  std::size_t i = 0;
  for (const GlueTask& task : kTasks) {
    for (const std::string_view metric : task.metrics) {
      if (!metric.empty()) columns.at(i++) = {task.name, metric};
    }
  }
  return columns;
}();
static_assert(!kColumns.back().task.empty());

}  // namespace

std::span<const GlueTask> glue_tasks() { return kTasks; }

std::span<const GlueColumn, kGlueColumns> glue_columns() { return kColumns; }

std::optional<double> mean_of(std::span<const std::optional<double>> values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const std::optional<double>& value : values) {
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(values.size());
}

std::optional<double> glue_average(std::span<const std::optional<double>, kGlueColumns> columns) {
  return mean_of(columns);
}

}  // namespace petlab::metrics
