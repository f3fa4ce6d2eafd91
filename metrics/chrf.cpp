#include "metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "metrics/ngram_matcher.h"
#include "metrics/text_tokenizers.h"
#include "metrics/token_index.h"
#include "metrics/unicode.h"

namespace petlab::metrics {
namespace {

constexpr int kMostOrders = 64;

// sacrebleu's F score from counts by order. Follows its steps, so that digits agree.
double f_score(const ChrfOptions& options, std::span<const double> statistics) {
  constexpr double kEpsilon = 1e-16;
  const double factor = static_cast<double>(options.beta) * options.beta;
  const auto orders = static_cast<std::size_t>(options.char_order + options.word_order);
  double sum_f = 0.0;
  double sum_precision = 0.0;
  double sum_recall = 0.0;
  int effective = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    const double in_hypothesis = statistics[3 * n];
    const double in_reference = statistics[3 * n + 1];
    const double matched = statistics[3 * n + 2];
    const double precision = in_hypothesis > 0 ? matched / in_hypothesis : kEpsilon;
    const double recall = in_reference > 0 ? matched / in_reference : kEpsilon;
    const double denominator = factor * precision + recall;
    sum_f += denominator > 0 ? (1 + factor) * precision * recall / denominator : kEpsilon;
    if (in_hypothesis > 0 && in_reference > 0) {
      sum_precision += precision;
      sum_recall += recall;
      ++effective;
    }
  }
  if (options.eps_smoothing) return 100 * sum_f / static_cast<double>(orders);
  if (effective == 0) return 0.0;
  const double precision = sum_precision / effective;
  const double recall = sum_recall / effective;
  if (precision + recall == 0) return 0.0;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

// Numbers the distinct characters of a reference.
class CharacterIndex {
 public:
  CharacterIndex() : direct_(kDirect) {}

  void clear(std::size_t bytes) {
    if (++stamp_ == 0) {
      direct_.assign(kDirect, Direct{});
      stamp_ = 1;
    }
    far_.clear(bytes);
    far_ids_.clear();
    size_ = 0;
  }

  std::uint32_t size() const { return size_; }

  std::uint32_t add(char32_t c, std::string_view bytes) {
    if (c < kDirect) {
      Direct& entry = direct_[c];
      if (entry.stamp != stamp_) entry = {stamp_, size_++};
      return entry.id;
    }
    const std::uint32_t id = far_.add(bytes);
    if (id == far_ids_.size()) far_ids_.push_back(size_++);
    return far_ids_[id];
  }

  std::uint32_t find(char32_t c, std::string_view bytes) const {
    if (c < kDirect) return direct_[c].stamp == stamp_ ? direct_[c].id : NgramMatcher::kNone;
    const std::uint32_t id = far_.find(bytes);
    return id == TokenIndex::kNone ? NgramMatcher::kNone : far_ids_[id];
  }

 private:
  static constexpr char32_t kDirect = 0x800;  // all scripts with two-byte UTF-8
  struct Direct {
    std::uint32_t stamp = 0;
    std::uint32_t id = 0;
  };
  std::vector<Direct> direct_;
  TokenIndex far_;
  std::vector<std::uint32_t> far_ids_;
  std::uint32_t stamp_ = 0;
  std::uint32_t size_ = 0;
};

class ChrfScorer : public SegmentScorer {
 public:
  explicit ChrfScorer(const ChrfOptions& options)
      : options_(options),
        matches_(static_cast<std::size_t>(options.char_order + options.word_order)),
        statistics_(3 * matches_.size()) {}

  void score(const Segment& segment, std::span<double> statistics) override {
    std::string_view hypothesis = segment.hypothesis;
    if (options_.lowercase) {
      lower_case(hypothesis, lowered_hypothesis_);
      hypothesis = lowered_hypothesis_;
    }
    if (options_.word_order > 0) {
      hypothesis_words_.clear();
      chrf_words(hypothesis, hypothesis_words_);
    }
    if (segment.references.size() == 1) {
      compare(hypothesis, segment.references[0], statistics);
      return;
    }
    double best = -1.0;
    for (const std::string_view reference : segment.references) {
      compare(hypothesis, reference, statistics_);
      const double f = f_score(options_, statistics_);
      if (f > best) {
        best = f;
        std::copy(statistics_.begin(), statistics_.end(), statistics.begin());
      }
    }
  }

 private:
  template <class Look>
  void characters(std::string_view text, std::vector<std::uint32_t>& ids, Look&& look) {
    ids.clear();
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
      const char* const start = p;
      const char32_t c = next_code_point(p);
      if (!options_.whitespace && is_white_space(c)) continue;
      ids.push_back(look(c, std::string_view(start, static_cast<std::size_t>(p - start))));
    }
  }

  void compare(std::string_view hypothesis, std::string_view reference,
               std::span<double> statistics) {
    if (options_.lowercase) {
      lower_case(reference, lowered_reference_);
      reference = lowered_reference_;
    }
    std::fill(matches_.begin(), matches_.end(), 0);
    const auto char_orders = static_cast<std::size_t>(options_.char_order);
    characters_.clear(reference.size());
    characters(reference, reference_ids_,
               [this](char32_t c, std::string_view bytes) { return characters_.add(c, bytes); });
    characters(hypothesis, hypothesis_ids_,
               [this](char32_t c, std::string_view bytes) { return characters_.find(c, bytes); });
    matcher_.match(reference_ids_, hypothesis_ids_, characters_.size(),
                   std::span(matches_).first(char_orders));
    fill(statistics, 0, char_orders);
    if (options_.word_order == 0) return;
    words_.clear();
    chrf_words(reference, words_);
    index_.clear(words_.size());
    reference_ids_.clear();
    for (const std::string_view word : words_) reference_ids_.push_back(index_.add(word));
    hypothesis_ids_.clear();
    for (const std::string_view word : hypothesis_words_) {
      hypothesis_ids_.push_back(index_.find(word));
    }
    matcher_.match(reference_ids_, hypothesis_ids_, index_.size(),
                   std::span(matches_).subspan(char_orders));
    fill(statistics, char_orders, matches_.size());
  }

  void fill(std::span<double> statistics, std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) {
      const std::size_t n = i - from;
      const std::size_t in_hypothesis = hypothesis_ids_.size() > n ? hypothesis_ids_.size() - n : 0;
      const std::size_t in_reference = reference_ids_.size() > n ? reference_ids_.size() - n : 0;
      statistics[3 * i] = in_reference > 0 ? static_cast<double>(in_hypothesis) : 0.0;
      statistics[3 * i + 1] = static_cast<double>(in_reference);
      statistics[3 * i + 2] = static_cast<double>(matches_[i]);
    }
  }

  ChrfOptions options_;
  std::vector<std::int64_t> matches_;
  std::vector<double> statistics_;
  std::string lowered_hypothesis_;
  std::string lowered_reference_;
  CharacterIndex characters_;
  std::vector<std::uint32_t> reference_ids_;
  std::vector<std::uint32_t> hypothesis_ids_;
  std::vector<std::string_view> words_;
  std::vector<std::string_view> hypothesis_words_;
  TokenIndex index_;
  NgramMatcher matcher_;
};

void check(std::string_view option, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(
      fmt::format("{} is {}, must be {} to {}", option, value, least, most));
}

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  check("char-order", options.char_order, 1, kMostOrders);
  check("word-order", options.word_order, 0, kMostOrders);
  check("beta", options.beta, 1, 1000);
}

std::string Chrf::name() const {
  return fmt::format("chrF{}", options_.beta) +
         std::string(static_cast<std::size_t>(options_.word_order), '+');
}

std::size_t Chrf::statistics_size() const {
  return 3 * static_cast<std::size_t>(options_.char_order + options_.word_order);
}

std::unique_ptr<SegmentScorer> Chrf::scorer() const {
  return std::make_unique<ChrfScorer>(options_);
}

double Chrf::score(std::span<const double> statistics) const {
  return f_score(options_, statistics);
}

Signature Chrf::signature(const SignatureContext& context) const {
  Signature signature;
  signature.add_context(context);
  signature.add("case", "c", options_.lowercase ? "lc" : "mixed");
  signature.add("eff", "e", options_.eps_smoothing ? "no" : "yes");
  signature.add("nc", "nc", std::to_string(options_.char_order));
  signature.add("nw", "nw", std::to_string(options_.word_order));
  signature.add("space", "s", options_.whitespace ? "yes" : "no");
  signature.add("version", "v", std::string(kSacrebleuVersion));
  return signature;
}

}  // namespace petlab::metrics
