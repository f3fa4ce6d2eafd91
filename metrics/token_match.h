#pragma once

#include <memory>
#include <span>
#include <string>

#include "metrics/text_metric.h"

namespace petlab::metrics {

// Metrics over the tokens that ASCII white space cuts a text into; case and punctuation count. They
// are for tasks whose targets are short and few are right: spelling, pronunciation, forms.

/// The fraction of texts whose tokens are those of a reference, 0 to 1. Statistics: right ones, and
/// 1 to count.
class ExactMatch : public TextMetric {
 public:
  std::string name() const override { return "exact-match"; }
  std::size_t statistics_size() const override { return 2; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
};

/// Insertions, deletions and substitutions that make the text its reference (Levenshtein), summed,
/// by the references' tokens, summed: the error rate of words or phonemes, which can exceed 1. Of
/// several references the one with the fewest edits counts, the first of equals. References without
/// any token have rate 0 where there are no edits, else 1, as TER has it. Statistics: edits, tokens
/// of the reference.
class TokenErrorRate : public TextMetric {
 public:
  std::string name() const override { return "token-error-rate"; }
  std::size_t statistics_size() const override { return 2; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
};

}  // namespace petlab::metrics
