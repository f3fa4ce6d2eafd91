#pragma once

#include <memory>
#include <span>
#include <string>

#include "metrics/text_metric.h"

namespace petlab::metrics {

/// sacrebleu's chrF options, with its defaults. word_order 2 is chrF++.
struct ChrfOptions {
  int char_order = 6;          // 1 to 64
  int word_order = 0;          // 0 to 64
  int beta = 2;                // weight of recall, at least 1
  bool lowercase = false;      // Unicode lower-casing
  bool whitespace = false;     // count white space as characters
  bool eps_smoothing = false;  // average F over all orders, as chrF++.py, NLTK and Moses do
  bool operator==(const ChrfOptions&) const = default;
};

/// chrF and chrF++ as computed by sacrebleu 2.6 (Popović 2015, 2017). Statistics by order,
/// characters first: the hypothesis's n-grams, the reference's, and the matches.
class Chrf : public TextMetric {
 public:
  /// Throws std::invalid_argument naming the invalid option.
  explicit Chrf(const ChrfOptions& options = {});

  std::string name() const override;  // "chrF2", "chrF2++"
  std::size_t statistics_size() const override;
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
  const ChrfOptions& options() const { return options_; }

 private:
  ChrfOptions options_;
};

}  // namespace petlab::metrics
