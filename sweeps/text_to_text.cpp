#include "sweeps/text_to_text.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "metrics/t5_labels.h"

namespace petlab::sweeps {

std::string source_text(const TaskDeclaration& task, std::span<const std::string> texts) {
  constexpr std::array<std::string_view, 2> kPlaces = {"{text1}", "{text2}"};
  std::string result;
  std::string_view rest = task.text_to_text.source;
  while (!rest.empty()) {
    std::size_t at = rest.size();
    std::size_t place = kPlaces.size();
    for (std::size_t i = 0; i < kPlaces.size(); ++i) {
      const std::size_t found = rest.find(kPlaces[i]);
      if (found >= at) continue;
      at = found;
      place = i;
    }
    result += rest.substr(0, at);
    if (place == kPlaces.size()) break;
    if (place >= texts.size()) {
      throw std::invalid_argument(
          fmt::format("task {}: text_to_text.source is '{}', must have a place for {} texts",
                      task.name, task.text_to_text.source, texts.size()));
    }
    result += texts[place];
    rest.remove_prefix(at + kPlaces[place].size());
  }
  return result;
}

std::string target_text(const TaskDeclaration& task, std::int64_t label) {
  const auto classes = static_cast<std::int64_t>(task.classes.size());
  if (label < 0 || label >= classes) {
    throw std::invalid_argument(
        fmt::format("task {}: class {} is not one of its {}", task.name, label, classes));
  }
  const std::vector<std::string>& targets = task.text_to_text.targets;
  return targets.empty() ? std::to_string(label) : targets.at(static_cast<std::size_t>(label));
}

std::string score_target_text(double score) { return metrics::score_text(score); }

}  // namespace petlab::sweeps
