#include "metrics/ter.h"

#include <algorithm>
#include <limits>

#include "metrics/ter_edits.h"
#include "metrics/token_index.h"

namespace petlab::metrics {
namespace {

class TerScorer : public SegmentScorer {
 public:
  TerScorer(std::shared_ptr<const TextTokenizer> tokenizer, bool normalized)
      : tokenizer_(std::move(tokenizer)), normalized_(normalized) {}

  void score(const Segment& segment, std::span<double> statistics) override {
    tokenizer_->tokenize(segment.hypothesis, hypothesis_);
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    std::int64_t length = 0;
    for (const std::string_view text : segment.references) {
      read_reference(text);
      index_.clear(hypothesis_.tokens.size() + reference_.tokens.size());
      number(reference_, reference_words_);
      number(hypothesis_, hypothesis_words_);
      fewest = std::min(fewest, edits_.count(hypothesis_words_, reference_words_));
      length += static_cast<std::int64_t>(reference_words_.size());
    }
    statistics[0] = static_cast<double>(fewest);
    statistics[1] = static_cast<double>(length) / static_cast<double>(segment.references.size());
  }

 private:
  // sacrebleu tokenizes references twice, which matters if the spaces of the first pass create new
  // matches ("..5" becomes ". .5" and then ". . 5").
  void read_reference(std::string_view text) {
    tokenizer_->tokenize(text, reference_);
    if (!normalized_) return;
    once_.clear();
    for (const std::string_view token : reference_.tokens) once_.append(token).append(" ");
    tokenizer_->tokenize(once_, reference_);
  }

  void number(const Tokens& tokens, std::vector<std::uint32_t>& words) {
    words.clear();
    for (const std::string_view token : tokens.tokens) words.push_back(index_.add(token));
  }

  std::shared_ptr<const TextTokenizer> tokenizer_;
  bool normalized_;
  std::string once_;
  Tokens hypothesis_;
  Tokens reference_;
  TokenIndex index_;
  std::vector<std::uint32_t> hypothesis_words_;
  std::vector<std::uint32_t> reference_words_;
  TerEdits edits_;
};

}  // namespace

Ter::Ter(const TercomOptions& options)
    : options_(options), tokenizer_(make_tercom_tokenizer(options)) {}

std::unique_ptr<SegmentScorer> Ter::scorer() const {
  return std::make_unique<TerScorer>(tokenizer_, options_.normalized);
}

double Ter::score(std::span<const double> statistics) const { return result(statistics).score; }

TerScore Ter::result(std::span<const double> statistics) const {
  const double edits = statistics[0];
  const double length = statistics[1];
  const double rate = length > 0 ? edits / length : edits > 0 ? 1.0 : 0.0;
  return {100 * rate, static_cast<std::int64_t>(edits), length};
}

Signature Ter::signature(const SignatureContext& context) const {
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  Signature signature;
  signature.add_context(context);
  signature.add("case", "c", options_.case_sensitive ? "mixed" : "lc");
  signature.add("tok", "t", tokenizer_->signature());
  signature.add("norm", "nr", yes(options_.normalized));
  signature.add("punct", "pn", yes(!options_.no_punct));
  signature.add("asian", "as", yes(options_.asian_support));
  signature.add("version", "v", std::string(kSacrebleuVersion));
  return signature;
}

}  // namespace petlab::metrics
