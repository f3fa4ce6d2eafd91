#include "metrics/token_match.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "metrics/token_index.h"

namespace petlab::metrics {
namespace {

void cut_at_white_space(std::string_view text, std::vector<std::string_view>& tokens) {
  constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";
  tokens.clear();
  for (std::size_t begin = text.find_first_not_of(kWhiteSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
    tokens.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kWhiteSpace, end);
  }
}

class ExactMatchScorer : public SegmentScorer {
 public:
  void score(const Segment& segment, std::span<double> statistics) override {
    cut_at_white_space(segment.hypothesis, hypothesis_);
    const bool right = std::any_of(segment.references.begin(), segment.references.end(),
                                   [this](std::string_view reference) {
                                     cut_at_white_space(reference, reference_);
                                     return reference_ == hypothesis_;
                                   });
    statistics[0] = right ? 1 : 0;
    statistics[1] = 1;
  }

 private:
  std::vector<std::string_view> hypothesis_;
  std::vector<std::string_view> reference_;
};

class TokenErrorScorer : public SegmentScorer {
 public:
  void score(const Segment& segment, std::span<double> statistics) override {
    cut_at_white_space(segment.hypothesis, hypothesis_);
    std::size_t fewest = 0;
    std::size_t length = 0;
    bool first = true;
    for (const std::string_view text : segment.references) {
      cut_at_white_space(text, reference_);
      const std::size_t found = edits();
      if (first || found < fewest) {
        fewest = found;
        length = reference_.size();
      }
      first = false;
    }
    statistics[0] = static_cast<double>(fewest);
    statistics[1] = static_cast<double>(length);
  }

 private:
  // Processes the table of prefixes row by row, so that memory grows only with the reference.
  std::size_t edits() {
    index_.clear(hypothesis_.size() + reference_.size());
    words_.clear();
    for (const std::string_view token : reference_) words_.push_back(index_.add(token));
    row_.resize(words_.size() + 1);
    std::iota(row_.begin(), row_.end(), std::size_t{0});
    for (std::size_t i = 0; i < hypothesis_.size(); ++i) {
      const std::uint32_t word = index_.find(hypothesis_[i]);
      std::size_t diagonal = row_[0];
      row_[0] = i + 1;
      for (std::size_t j = 0; j < words_.size(); ++j) {
        const std::size_t substituted = diagonal + (words_[j] == word ? 0 : 1);
        diagonal = row_[j + 1];
        row_[j + 1] = std::min({substituted, diagonal + 1, row_[j] + 1});
      }
    }
    return row_.back();
  }

  std::vector<std::string_view> hypothesis_;
  std::vector<std::string_view> reference_;
  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> row_;
  TokenIndex index_;
};

Signature white_space_signature(const SignatureContext& context) {
  Signature signature;
  signature.add_context(context);
  signature.add("tok", "t", "white-space");
  return signature;
}

}  // namespace

std::unique_ptr<SegmentScorer> ExactMatch::scorer() const {
  return std::make_unique<ExactMatchScorer>();
}

double ExactMatch::score(std::span<const double> statistics) const {
  return statistics[1] > 0 ? statistics[0] / statistics[1] : 0.0;
}

Signature ExactMatch::signature(const SignatureContext& context) const {
  return white_space_signature(context);
}

std::unique_ptr<SegmentScorer> TokenErrorRate::scorer() const {
  return std::make_unique<TokenErrorScorer>();
}

double TokenErrorRate::score(std::span<const double> statistics) const {
  if (statistics[1] > 0) return statistics[0] / statistics[1];
  return statistics[0] > 0 ? 1.0 : 0.0;
}

Signature TokenErrorRate::signature(const SignatureContext& context) const {
  return white_space_signature(context);
}

}  // namespace petlab::metrics
