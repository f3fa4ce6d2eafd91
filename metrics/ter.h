#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "metrics/text_metric.h"
#include "metrics/text_tokenizers.h"

namespace petlab::metrics {

/// A TER score and its parts.
struct TerScore {
  double score = 0.0;          // 100 · edits / reference length; can exceed 100
  std::int64_t num_edits = 0;  // the fewest over the references, summed
  double ref_length = 0.0;     // mean length of the references, summed
};

/// Translation edit rate as computed by sacrebleu 2.6 (Snover et al. 2006; Tercom's shifts).
/// Statistics: edits, mean reference length.
class Ter : public TextMetric {
 public:
  explicit Ter(const TercomOptions& options = {});

  std::string name() const override { return "TER"; }
  std::size_t statistics_size() const override { return 2; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
  TerScore result(std::span<const double> statistics) const;

 private:
  TercomOptions options_;
  std::shared_ptr<const TextTokenizer> tokenizer_;
};

}  // namespace petlab::metrics
