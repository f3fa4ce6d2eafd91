#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/text_metric.h"
#include "metrics/text_tokenizers.h"

namespace petlab::metrics {

/// How BLEU treats n-gram orders without a match (Chen and Cherry 2014; sacrebleu's names).
enum class Smoothing { exponential, floor, add_k, none };
/// "exp", "floor", "add-k", "none".
std::string_view to_string(Smoothing smoothing);
/// Throws std::invalid_argument for any other word, naming the nearest.
Smoothing smoothing_from(std::string_view text);
std::span<const std::string_view> smoothing_names();

/// sacrebleu's BLEU options, with its defaults.
struct BleuOptions {
  std::string tokenize = "13a";          // see text_tokenizer_names()
  std::optional<std::string> spm_model;  // the model file of the tokenizer spm
  bool lowercase = false;                // Unicode lower-casing before tokenizing
  std::string smooth_method = "exp";     // default by method: floor 0.1, add-k 1; others take none
  std::optional<double> smooth_value;    // floor: 0.1 if not given, add-k: 1; others have none
  int max_ngram_order = 4;               // average over the existing orders only; for sentences
  bool effective_order = false;          // average over the orders that there are; for sentences
  bool operator==(const BleuOptions&) const = default;
};
inline constexpr int kMaxNgramOrder = 64;

/// A BLEU score and all its parts.
struct BleuScore {
  double score = 0.0;              // 0 to 100
  std::vector<double> counts;      // matched n-grams by order; includes k of add-k
  std::vector<double> totals;      // the hypotheses' n-grams by order; includes k of add-k
  std::vector<double> precisions;  // 0 to 100
  double bp = 1.0;                 // brevity penalty
  std::int64_t sys_len = 0;        // tokens of the hypotheses
  std::int64_t ref_len = 0;        // tokens of the nearest references
  /// sacrebleu's "56.5/28.1/15.4/7.3 (BP = 1.000 ratio = 1.003 hyp_len = 4485 ref_len = 4473)".
  std::string verbose() const;
};

/// BLEU as computed by sacrebleu 2.6 (Papineni et al. 2002; Post 2018). Statistics: hypothesis
/// length, reference length, then matches and totals by order.
class Bleu : public TextMetric {
 public:
  /// Throws std::invalid_argument naming the invalid option, InputError for the model file.
  explicit Bleu(const BleuOptions& options = {});

  std::string name() const override { return "BLEU"; }
  std::size_t statistics_size() const override;
  std::unique_ptr<SegmentScorer> scorer() const override;
  double score(std::span<const double> statistics) const override;
  Signature signature(const SignatureContext& context) const override;
  /// All parts of the score, from summed statistics.
  BleuScore result(std::span<const double> statistics) const;
  const BleuOptions& options() const { return options_; }

 private:
  double score_into(std::span<const double> statistics, BleuScore* parts) const;

  BleuOptions options_;
  Smoothing smoothing_;
  double smooth_value_;
  std::shared_ptr<const TextTokenizer> tokenizer_;
};

}  // namespace petlab::metrics
