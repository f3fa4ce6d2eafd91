#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace petlab::metrics {

/// A GLUE task and its metrics (reference/method.md, "GLUE protocol").
struct GlueTask {
  std::string_view name;
  std::int64_t num_labels = 2;              // 1: regression
  std::array<std::string_view, 2> metrics;  // the second is empty if there is only one
};

/// The eight tasks of the protocol, in the order of the paper's tables.
std::span<const GlueTask> glue_tasks();

/// One of the eleven columns of a GLUE table: `cola.matthews`.
struct GlueColumn {
  std::string_view task;
  std::string_view metric;
};
inline constexpr std::size_t kGlueColumns = 11;

/// The columns, in the order of the paper's tables.
std::span<const GlueColumn, kGlueColumns> glue_columns();

/// The mean of the values; undefined if there are none or one is undefined. Used to rank results of
/// tasks with two metrics.
std::optional<double> mean_of(std::span<const std::optional<double>> values);

/// The GLUE average: the mean over the eleven columns (not over eight tasks), in the order of
/// glue_columns(); undefined if a column is.
std::optional<double> glue_average(std::span<const std::optional<double>, kGlueColumns> columns);

}  // namespace petlab::metrics
