#include "metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "base/nearest_word.h"
#include "metrics/ngram_matcher.h"
#include "metrics/token_index.h"

namespace petlab::metrics {
namespace {

constexpr std::array<std::string_view, 4> kSmoothings = {"exp", "floor", "add-k", "none"};

// sacrebleu's logarithm, which is defined at 0.
double floored_log(double x) { return x == 0.0 ? -9999999999.0 : std::log(x); }

class BleuScorer : public SegmentScorer {
 public:
  BleuScorer(std::shared_ptr<const TextTokenizer> tokenizer, std::size_t orders)
      : tokenizer_(std::move(tokenizer)), matches_(orders) {}

  void score(const Segment& segment, std::span<double> statistics) override {
    const std::size_t references = segment.references.size();
    if (tokens_.size() < references) {
      tokens_.resize(references);
      ids_.resize(references);
    }
    tokenizer_->tokenize(segment.hypothesis, hypothesis_);
    const std::size_t length = hypothesis_.tokens.size();
    std::size_t reference_tokens = 0;
    std::size_t nearest = 0;
    for (std::size_t r = 0; r < references; ++r) {
      tokenizer_->tokenize(segment.references[r], tokens_[r]);
      const std::size_t size = tokens_[r].tokens.size();
      reference_tokens += size;
      const auto distance = [length](std::size_t other) {
        return other > length ? other - length : length - other;
      };
      if (r == 0 || distance(size) < distance(nearest) ||
          (distance(size) == distance(nearest) && size < nearest)) {
        nearest = size;
      }
    }
    index_.clear(reference_tokens);
    views_.clear();
    for (std::size_t r = 0; r < references; ++r) {
      ids_[r].clear();
      for (const std::string_view token : tokens_[r].tokens) ids_[r].push_back(index_.add(token));
      views_.push_back(ids_[r]);
    }
    hypothesis_ids_.clear();
    for (const std::string_view token : hypothesis_.tokens) {
      hypothesis_ids_.push_back(index_.find(token));
    }
    std::fill(matches_.begin(), matches_.end(), 0);
    if (references == 1) {
      matcher_.match(views_[0], hypothesis_ids_, index_.size(), matches_);
    } else {
      matcher_.match(views_, hypothesis_ids_, index_.size(), matches_);
    }
    const std::size_t orders = matches_.size();
    statistics[0] = static_cast<double>(length);
    statistics[1] = static_cast<double>(nearest);
    for (std::size_t n = 0; n < orders; ++n) {
      statistics[2 + n] = static_cast<double>(matches_[n]);
      statistics[2 + orders + n] = static_cast<double>(length > n ? length - n : 0);
    }
  }

 private:
  std::shared_ptr<const TextTokenizer> tokenizer_;
  std::vector<std::int64_t> matches_;
  Tokens hypothesis_;
  std::vector<Tokens> tokens_;
  TokenIndex index_;
  std::vector<std::vector<std::uint32_t>> ids_;
  std::vector<std::span<const std::uint32_t>> views_;
  std::vector<std::uint32_t> hypothesis_ids_;
  NgramMatcher matcher_;
};

}  // namespace

std::string_view to_string(Smoothing smoothing) {
  return kSmoothings[static_cast<std::size_t>(smoothing)];
}

Smoothing smoothing_from(std::string_view text) {
  const auto* const found = std::find(kSmoothings.begin(), kSmoothings.end(), text);
  if (found == kSmoothings.end()) {
    throw std::invalid_argument(base::unknown_word("smoothing method", text, kSmoothings));
  }
  return static_cast<Smoothing>(found - kSmoothings.begin());
}

std::span<const std::string_view> smoothing_names() { return kSmoothings; }

std::string BleuScore::verbose() const {
  std::string text;
  for (const double precision : precisions) {
    text += fmt::format("{}{:.1f}", text.empty() ? "" : "/", precision);
  }
  const double ratio =
      ref_len == 0 ? 0.0 : static_cast<double>(sys_len) / static_cast<double>(ref_len);
  return text + fmt::format(" (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", bp, ratio,
                            sys_len, ref_len);
}

Bleu::Bleu(const BleuOptions& options)
    : options_(options),
      smoothing_(smoothing_from(options.smooth_method)),
      smooth_value_(smoothing_ == Smoothing::floor ? 0.1 : 1.0) {
  if (options.max_ngram_order < 1 || options.max_ngram_order > kMaxNgramOrder) {
    throw std::invalid_argument(fmt::format("max-ngram-order is {}, must be 1 to {}",
                                            options.max_ngram_order, kMaxNgramOrder));
  }
  if (options.smooth_value) {
    smooth_value_ = *options.smooth_value;
    if (smoothing_ != Smoothing::floor && smoothing_ != Smoothing::add_k) {
      throw std::invalid_argument(
          fmt::format("smooth-value is {}, but smooth-method {} takes none (floor and add-k do)",
                      smooth_value_, options.smooth_method));
    }
    if (!std::isfinite(smooth_value_) || smooth_value_ < 0.0) {
      throw std::invalid_argument(
          fmt::format("smooth-value is {}, must be a number of at least 0", smooth_value_));
    }
  }
  tokenizer_ = make_text_tokenizer(options.tokenize, options.lowercase, options.spm_model);
}

std::size_t Bleu::statistics_size() const {
  return 2 + 2 * static_cast<std::size_t>(options_.max_ngram_order);
}

std::unique_ptr<SegmentScorer> Bleu::scorer() const {
  return std::make_unique<BleuScorer>(tokenizer_,
                                      static_cast<std::size_t>(options_.max_ngram_order));
}

// Follows sacrebleu's steps, so that all parts agree and not only the score.
double Bleu::score_into(std::span<const double> statistics, BleuScore* parts) const {
  const auto orders = static_cast<std::size_t>(options_.max_ngram_order);
  const double sys_len = statistics[0];
  const double ref_len = statistics[1];
  std::array<double, kMaxNgramOrder> counts{};
  std::array<double, kMaxNgramOrder> totals{};
  std::array<double, kMaxNgramOrder> precisions{};
  std::copy_n(statistics.begin() + 2, orders, counts.begin());
  std::copy_n(statistics.begin() + 2 + static_cast<std::ptrdiff_t>(orders), orders, totals.begin());
  double bp = 1.0;
  if (sys_len < ref_len) bp = sys_len > 0 ? std::exp(1.0 - ref_len / sys_len) : 0.0;
  double score = 0.0;
  if (std::any_of(counts.begin(), counts.end(), [](double count) { return count != 0.0; })) {
    double halving = 1.0;
    std::size_t effective = orders;
    for (std::size_t n = 0; n < orders; ++n) {
      if (smoothing_ == Smoothing::add_k && n > 0) {
        counts[n] += smooth_value_;
        totals[n] += smooth_value_;
      }
      if (totals[n] == 0.0) break;
      if (options_.effective_order) effective = n + 1;
      if (counts[n] != 0.0) {
        precisions[n] = 100.0 * counts[n] / totals[n];
      } else if (smoothing_ == Smoothing::exponential) {
        halving *= 2.0;
        precisions[n] = 100.0 / (halving * totals[n]);
      } else if (smoothing_ == Smoothing::floor) {
        precisions[n] = 100.0 * smooth_value_ / totals[n];
      }
    }
    double logs = 0.0;
    for (std::size_t n = 0; n < effective; ++n) logs += floored_log(precisions[n]);
    score = bp * std::exp(logs / static_cast<double>(effective));
  }
  if (parts != nullptr) {
    const auto size = static_cast<std::ptrdiff_t>(orders);
    parts->score = score;
    parts->counts.assign(counts.begin(), counts.begin() + size);
    parts->totals.assign(totals.begin(), totals.begin() + size);
    parts->precisions.assign(precisions.begin(), precisions.begin() + size);
    parts->bp = bp;
    parts->sys_len = static_cast<std::int64_t>(sys_len);
    parts->ref_len = static_cast<std::int64_t>(ref_len);
  }
  return score;
}

double Bleu::score(std::span<const double> statistics) const {
  return score_into(statistics, nullptr);
}

BleuScore Bleu::result(std::span<const double> statistics) const {
  BleuScore parts;
  score_into(statistics, &parts);
  return parts;
}

Signature Bleu::signature(const SignatureContext& context) const {
  Signature signature;
  signature.add_context(context);
  signature.add("case", "c", options_.lowercase ? "lc" : "mixed");
  signature.add("eff", "e", options_.effective_order ? "yes" : "no");
  signature.add("tok", "tok", tokenizer_->signature());
  std::string smooth = options_.smooth_method;
  if (smoothing_ == Smoothing::floor || smoothing_ == Smoothing::add_k) {
    smooth += fmt::format("[{:.2f}]", smooth_value_);
  }
  signature.add("smooth", "s", smooth);
  signature.add("version", "v", std::string(kSacrebleuVersion));
  return signature;
}

}  // namespace petlab::metrics
