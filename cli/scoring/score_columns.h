#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cli/scoring/score.h"

namespace petlab::cli {

/// A run of values of the hypotheses' file and of the references', equally many.
template <class Value>
using ColumnsVisitor =
    std::function<void(std::span<const Value> predicted, std::span<const Value> gold)>;

/// Reads the hypotheses' file and the references' side by side in constant memory, a class a line,
/// and gives runs of labels to `visit` on this thread; with options.threads > 1 both files are read
/// at once. White space around a label does not count. Throws metrics::InputError for a file that
/// cannot be read, is empty or not UTF-8, for files of different lengths and for a line that is no
/// label below `num_labels` (<= metrics::kMaxLabels), with its number; std::invalid_argument unless
/// there is one file of references.
void for_each_labels(const ScoreOptions& options, Streams streams, std::int64_t num_labels,
                     const ColumnsVisitor<std::int32_t>& visit);

/// The same with finite decimal numbers (metrics::parse_score_text).
void for_each_numbers(const ScoreOptions& options, Streams streams,
                      const ColumnsVisitor<double>& visit);

}  // namespace petlab::cli
