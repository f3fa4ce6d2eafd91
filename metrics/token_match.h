#pragma once

#include <memory>
#include <span>
#include <string>

#include "metrics/text_metric.h"

namespace petlab::metrics {

// Metrics over tokens separated by ASCII white space, sensitive to case and punctuation. Use them
// for tasks with short targets and few correct answers: spelling, pronunciation, inflection.

/// The fraction of texts whose tokens equal those of a reference, 0 to 1. Statistics: 1 if equal,
/// and 1 for counting.
class ExactMatch : public TextMetric {
 public:
  std::string name() const override { return "exact-match"; }
  std::size_t statistics_size() const override { return 2; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
};

/// The word or phoneme error rate: insertions, deletions and substitutions that turn the text into
/// its reference (Levenshtein), summed, divided by the references' tokens, summed; can exceed 1. Of
/// several references, the one with the fewest edits counts, the first of equals. For references
/// without tokens the rate is 0 without edits, else 1, as in TER. Statistics: edits, reference
/// tokens.
class TokenErrorRate : public TextMetric {
 public:
  std::string name() const override { return "token-error-rate"; }
  std::size_t statistics_size() const override { return 2; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
};

}  // namespace petlab::metrics
