#include "metrics/rouge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "metrics/lcs.h"
#include "metrics/ngram_matcher.h"
#include "metrics/numpy_random.h"
#include "metrics/rouge_tokens.h"
#include "metrics/token_index.h"

namespace petlab::metrics {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"rouge1", "rouge2", "rougeL", "rougeLsum"};

RougeScore rouge_score(double hits, double in_prediction, double in_target) {
  RougeScore score{hits / std::max(in_prediction, 1.0), hits / std::max(in_target, 1.0), 0.0};
  const double sum = score.precision + score.recall;
  if (sum > 0) score.f = 2 * score.precision * score.recall / sum;
  return score;
}

class RougeScorer : public SegmentScorer {
 public:
  explicit RougeScorer(const RougeOptions& options)
      : type_(options.type), tokenizer_(options.stem) {}

  void score(const Segment& segment, std::span<double> statistics) override {
    tokenizer_.clear();
    read(segment.hypothesis, prediction_);
    RougeScore best;
    bool first = true;
    for (const std::string_view reference : segment.references) {
      read(reference, target_);
      const RougeScore score = compare();
      if (first || score.f > best.f) best = score;
      first = false;
    }
    statistics[0] = best.precision;
    statistics[1] = best.recall;
    statistics[2] = best.f;
    statistics[3] = 1.0;
  }

 private:
  // The tokens of a text and the end of each sentence (only rougeLsum has more than one).
  struct Text {
    std::vector<std::string_view> tokens;
    std::vector<std::size_t> ends;
    std::vector<std::uint32_t> ids;
    std::span<const std::uint32_t> sentence(std::size_t i) const {
      const std::size_t from = i == 0 ? 0 : ends[i - 1];
      return std::span(ids).subspan(from, ends[i] - from);
    }
  };

  void read(std::string_view text, Text& out) {
    out.tokens.clear();
    out.ends.clear();
    while (type_ == RougeType::rougeLsum && !text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end > 0) {
        tokenizer_.tokenize(text.substr(0, end), out.tokens);
        out.ends.push_back(out.tokens.size());
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (type_ != RougeType::rougeLsum) {
      tokenizer_.tokenize(text, out.tokens);
      out.ends.push_back(out.tokens.size());
    }
  }

  RougeScore compare() {
    index_.clear(target_.tokens.size());
    target_.ids.clear();
    for (const std::string_view token : target_.tokens) target_.ids.push_back(index_.add(token));
    prediction_.ids.clear();
    for (const std::string_view token : prediction_.tokens) {
      prediction_.ids.push_back(index_.find(token));
    }
    switch (type_) {
      case RougeType::rouge1:
        return compare_ngrams(1);
      case RougeType::rouge2:
        return compare_ngrams(2);
      case RougeType::rougeL:
        lcs_.set_reference(target_.ids, index_.size());
        return rouge_score(static_cast<double>(lcs_.length(prediction_.ids)),
                           static_cast<double>(prediction_.ids.size()),
                           static_cast<double>(target_.ids.size()));
      case RougeType::rougeLsum:
        break;
    }
    return compare_sentences();
  }

  RougeScore compare_ngrams(std::size_t n) {
    std::array<std::int64_t, 2> matches{};
    matcher_.match(target_.ids, prediction_.ids, index_.size(), std::span(matches).first(n));
    const auto ngrams = [n](const Text& text) {
      return static_cast<double>(text.ids.size() >= n ? text.ids.size() - n + 1 : 0);
    };
    return rouge_score(static_cast<double>(matches[n - 1]), ngrams(prediction_), ngrams(target_));
  }

  // Scores the union of each target sentence's common subsequences with all sentences of the
  // prediction. No token counts more often than it occurs in either text.
  RougeScore compare_sentences() {
    left_.assign(index_.size(), 0);
    for (const std::uint32_t id : prediction_.ids) {
      if (id < left_.size()) ++left_[id];
    }
    std::size_t hits = 0;
    for (std::size_t t = 0; t < target_.ends.size(); ++t) {
      const auto sentence = target_.sentence(t);
      lcs_.set_reference(sentence, index_.size());
      in_common_.assign(sentence.size(), 0);
      for (std::size_t p = 0; p < prediction_.ends.size(); ++p) {
        lcs_.mark(prediction_.sentence(p), in_common_);
      }
      for (std::size_t i = 0; i < sentence.size(); ++i) {
        if (in_common_[i] == 0 || left_[sentence[i]] == 0) continue;
        --left_[sentence[i]];
        ++hits;
      }
    }
    return rouge_score(static_cast<double>(hits), static_cast<double>(prediction_.ids.size()),
                       static_cast<double>(target_.ids.size()));
  }

  RougeType type_;
  RougeTokenizer tokenizer_;
  Text prediction_;
  Text target_;
  TokenIndex index_;
  NgramMatcher matcher_;
  LongestCommonSubsequence lcs_;
  std::vector<char> in_common_;
  std::vector<std::uint32_t> left_;
};

// numpy.percentile's default: linear interpolation. `values` must be sorted.
double percentile(std::span<const double> values, double fraction) {
  const double at = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - std::floor(at));
}

}  // namespace

std::string_view to_string(RougeType type) { return kTypes[static_cast<std::size_t>(type)]; }

std::optional<RougeType> rouge_type_from(std::string_view text) {
  const auto* const found = std::find(kTypes.begin(), kTypes.end(), text);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<RougeType>(found - kTypes.begin());
}

Rouge::Rouge(const RougeOptions& options) : options_(options) {}

std::string Rouge::name() const { return std::string(to_string(options_.type)); }

std::unique_ptr<SegmentScorer> Rouge::scorer() const {
  return std::make_unique<RougeScorer>(options_);
}

double Rouge::score(std::span<const double> statistics) const { return result(statistics).f; }

RougeScore Rouge::result(std::span<const double> statistics) const {
  const double segments = statistics[3];
  if (segments == 0) return {};
  return {statistics[0] / segments, statistics[1] / segments, statistics[2] / segments};
}

Signature Rouge::signature(const SignatureContext& context) const {
  Signature signature;
  signature.add_context(context);
  signature.add("stem", "st", options_.stem ? "yes" : "no");
  signature.add("tok", "tok", "rouge-score");
  signature.add("version", "v", std::string(kRougeScoreVersion));
  return signature;
}

std::vector<std::string> rouge_tokens(std::string_view text, bool stem) {
  RougeTokenizer tokenizer(stem);
  std::vector<std::string_view> tokens;
  tokenizer.tokenize(text, tokens);
  return {tokens.begin(), tokens.end()};
}

RougeInterval bootstrap_rouge(std::span<const RougeScore> scores, std::uint64_t seed, int resamples,
                              double confidence) {
  if (scores.empty())
    throw std::invalid_argument("found no scores for the bootstrap, expected at least one");
  if (resamples < 1) {
    throw std::invalid_argument(fmt::format("resamples is {}, must be at least 1", resamples));
  }
  if (!(confidence >= 0.0 && confidence <= 1.0)) {
    throw std::invalid_argument(fmt::format("confidence is {}, must be 0 to 1", confidence));
  }
  NumpyRandom random(seed);
  std::array<std::vector<double>, 3> means;
  const auto count = static_cast<double>(scores.size());
  for (int b = 0; b < resamples; ++b) {
    RougeScore sum;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const RougeScore& drawn = scores[random.below(scores.size())];
      sum.precision += drawn.precision;
      sum.recall += drawn.recall;
      sum.f += drawn.f;
    }
    means[0].push_back(sum.precision / count);
    means[1].push_back(sum.recall / count);
    means[2].push_back(sum.f / count);
  }
  for (std::vector<double>& values : means) std::sort(values.begin(), values.end());
  const auto at = [&means](double fraction) {
    return RougeScore{percentile(means[0], fraction), percentile(means[1], fraction),
                      percentile(means[2], fraction)};
  };
  const double tail = (1.0 - confidence) / 2.0;
  return {at(tail), at(0.5), at(1.0 - tail)};
}

}  // namespace petlab::metrics
