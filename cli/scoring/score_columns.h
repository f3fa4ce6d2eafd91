#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cli/scoring/score.h"

namespace petlab::cli {

/// Receives a run of values of the hypotheses and the same number of values of the references.
template <class Value>
using ColumnsVisitor =
    std::function<void(std::span<const Value> predicted, std::span<const Value> gold)>;

/// Reads the hypotheses' and the references' file side by side in constant memory, one class per
/// line, and passes runs of labels to `visit` on this thread. With options.threads > 1 both files
/// are read in parallel. White space around labels is ignored. Throws metrics::InputError for a
/// file that cannot be read, is empty or not UTF-8, for files of different lengths, and with its
/// number for a line that is not a label below `num_labels` (<= metrics::kMaxLabels);
/// std::invalid_argument unless there is exactly one file of references.
void for_each_labels(const ScoreOptions& options, Streams streams, std::int64_t num_labels,
                     const ColumnsVisitor<std::int32_t>& visit);

/// The same for finite decimal numbers (metrics::parse_score_text).
void for_each_numbers(const ScoreOptions& options, Streams streams,
                      const ColumnsVisitor<double>& visit);

}  // namespace petlab::cli
