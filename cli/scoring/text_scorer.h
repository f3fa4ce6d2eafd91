#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/scoring/score.h"
#include "metrics/significance.h"
#include "metrics/text_metric.h"

namespace petlab::cli {

/// What a metric shows of summed statistics beside its score.
struct ScoreParts {
  std::string verbose;  // as sacrebleu's verbose score; empty: none
  nlohmann::ordered_json json = nlohmann::ordered_json::object();  // by sacrebleu's names
};

/// A text metric with its parts.
struct Scorer {
  std::unique_ptr<metrics::TextMetric> metric;
  std::function<ScoreParts(std::span<const double>)> parts;
};

/// The options' metric. Throws std::invalid_argument for options that contradict each other.
Scorer make_scorer(const ScoreOptions& options);

/// The statistics of a file of hypotheses beside the options' references.
metrics::SystemStatistics collect_system(const Scorer& scorer, const std::string& hypotheses,
                                         const ScoreOptions& options, Streams streams);

/// A system's statistics summed as evaluate() sums, so that the score is the same to the last
/// digit.
std::vector<double> sums_of(const metrics::SystemStatistics& system);

/// Long, or short where the options say so.
std::string signature_text(const metrics::Signature& signature, const ScoreOptions& options);

}  // namespace petlab::cli
