#include "reports/words.h"

#include "base/nearest_word.h"

namespace petlab::reports {

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string_view> known(candidates.begin(), candidates.end());
  const std::string_view nearest = base::nearest_word(word, known);
  return nearest.empty() ? std::string() : "; did you mean " + std::string(nearest) + "?";
}

std::string joined(std::span<const std::string> words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

}  // namespace petlab::reports
