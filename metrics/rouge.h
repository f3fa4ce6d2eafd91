#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/text_metric.h"

namespace petlab::metrics {

/// The release of rouge-score whose values are reproduced, as in signatures.
inline constexpr std::string_view kRougeScoreVersion = "0.1.2";

/// The supported kinds of ROUGE (Lin 2004).
enum class RougeType { rouge1, rouge2, rougeL, rougeLsum };
std::string_view to_string(RougeType type);  // "rouge1", "rouge2", "rougeL", "rougeLsum"
std::optional<RougeType> rouge_type_from(std::string_view text);

struct RougeOptions {
  RougeType type = RougeType::rouge1;
  bool stem = false;  // Porter's stemmer on tokens of more than three characters
};

/// Precision, recall and F1, each 0 to 1.
struct RougeScore {
  double precision = 0.0;
  double recall = 0.0;
  double f = 0.0;
};

/// ROUGE as computed by rouge-score 0.1.2: a segment's score is that of the reference with the
/// largest F (the first of equals); a corpus has the means. Statistics: precision, recall, F, and 1
/// for counting. rougeLsum treats lines, split at "\n", as sentences.
class Rouge : public TextMetric {
 public:
  explicit Rouge(const RougeOptions& options);

  std::string name() const override;
  std::size_t statistics_size() const override { return 4; }
  std::unique_ptr<SegmentScorer> scorer() const override;
  /// The mean F.
  double score(std::span<const double> statistics) const override;
  /// "nrefs:1|stem:no|tok:rouge-score|version:0.1.2" (rouge-score itself has no signatures).
  Signature signature(const SignatureContext& context) const override;
  /// The means.
  RougeScore result(std::span<const double> statistics) const;

 private:
  RougeOptions options_;
};

/// rouge-score's tokens: lower-cased runs of a-z and 0-9, stemmed if `stem` is set.
std::vector<std::string> rouge_tokens(std::string_view text, bool stem);

/// rouge-score's BootstrapAggregator: percentiles 2.5, 50 and 97.5 of the mean over resamples.
/// `mid` is the median of the resampled means, which differs from the mean. rouge-score uses no
/// seed, so only the distributions of the values agree.
struct RougeInterval {
  RougeScore low;
  RougeScore mid;
  RougeScore high;
};
/// Throws std::invalid_argument for empty `scores`, for resamples < 1 and for a confidence outside
/// 0 to 1.
RougeInterval bootstrap_rouge(std::span<const RougeScore> scores, std::uint64_t seed = 12345,
                              int resamples = 1000, double confidence = 0.95);

}  // namespace petlab::metrics
