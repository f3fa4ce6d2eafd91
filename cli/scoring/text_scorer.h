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

/// The parts of a score computed from summed statistics.
struct ScoreParts {
  std::string verbose;  // sacrebleu's verbose score; empty: none
  nlohmann::ordered_json json = nlohmann::ordered_json::object();  // with sacrebleu's names
};

/// A text metric and access to its parts.
struct Scorer {
  std::unique_ptr<metrics::TextMetric> metric;
  std::function<ScoreParts(std::span<const double>)> parts;
};

/// Creates the metric that the options select. Throws std::invalid_argument for contradicting
/// options.
Scorer make_scorer(const ScoreOptions& options);

/// The statistics of a file of hypotheses against the options' references.
metrics::SystemStatistics collect_system(const Scorer& scorer, const std::string& hypotheses,
                                         const ScoreOptions& options, Streams streams);

/// Sums a system's statistics in the order of evaluate(), so that scores agree to the last digit.
std::vector<double> sums_of(const metrics::SystemStatistics& system);

/// The signature in the long form, or in the short form if the options request it.
std::string signature_text(const metrics::Signature& signature, const ScoreOptions& options);

}  // namespace petlab::cli
