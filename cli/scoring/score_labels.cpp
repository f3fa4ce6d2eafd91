#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "cli/scoring/score.h"
#include "cli/scoring/score_columns.h"
#include "metrics/classification.h"

namespace petlab::cli {
namespace {

// Counts for as many classes as the labels require. Memory does not grow with the lines.
class GrowingCounts {
 public:
  void add(std::int64_t gold, std::int64_t predicted) {
    const std::int64_t needed = std::max(gold, predicted) + 1;
    if (needed > side_) grow(needed);
    counts_[static_cast<std::size_t>(gold * side_ + predicted)]++;
  }

  metrics::Confusion confusion(std::int64_t num_labels) const {
    metrics::Confusion result(num_labels);
    for (std::int64_t gold = 0; gold < side_; ++gold) {
      for (std::int64_t predicted = 0; predicted < side_; ++predicted) {
        const std::int64_t times = counts_[static_cast<std::size_t>(gold * side_ + predicted)];
        if (times > 0) result.add(gold, predicted, times);
      }
    }
    return result;
  }
  std::int64_t side() const { return side_; }

 private:
  void grow(std::int64_t needed) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(needed * needed), 0);
    for (std::int64_t gold = 0; gold < side_; ++gold) {
      std::copy_n(counts_.begin() + gold * side_, side_, counts.begin() + gold * needed);
    }
    counts_ = std::move(counts);
    side_ = needed;
  }

  std::int64_t side_ = 0;
  std::vector<std::int64_t> counts_;  // (side, side)
};

metrics::Confusion read_labels(const ScoreOptions& options, Streams streams) {
  if (options.num_labels &&
      (*options.num_labels < 2 || *options.num_labels > metrics::kMaxLabels)) {
    throw std::invalid_argument(fmt::format("--num-labels is {}, must be 2 to {}",
                                            *options.num_labels, metrics::kMaxLabels));
  }
  const std::int64_t most = options.num_labels.value_or(metrics::kMaxLabels);
  GrowingCounts counts;
  for_each_labels(
      options, streams, most,
      [&counts](std::span<const std::int32_t> predicted, std::span<const std::int32_t> gold) {
        for (std::size_t i = 0; i < gold.size(); ++i) counts.add(gold[i], predicted[i]);
      });
  return counts.confusion(options.num_labels.value_or(std::max<std::int64_t>(counts.side(), 2)));
}

struct NumberPairs {
  std::vector<double> gold;
  std::vector<double> predicted;
};

NumberPairs read_numbers(const ScoreOptions& options, Streams streams) {
  NumberPairs numbers;
  for_each_numbers(options, streams,
                   [&numbers](std::span<const double> predicted, std::span<const double> gold) {
                     numbers.predicted.insert(numbers.predicted.end(), predicted.begin(),
                                              predicted.end());
                     numbers.gold.insert(numbers.gold.end(), gold.begin(), gold.end());
                   });
  return numbers;
}

}  // namespace

void score_labels(const metrics::MetricRow& metric, const ScoreOptions& options, Streams streams) {
  std::optional<double> value;
  std::string note;
  std::int64_t n = 0;
  nlohmann::ordered_json json = {{"name", metric.name}};
  if (metric.input == metrics::MetricInput::labels) {
    const metrics::Confusion confusion = read_labels(options, streams);
    value = metric.of_labels(confusion);
    note = metrics::convention_note(confusion, metric.name);
    n = confusion.total();
    json["score"] = *value;
    json["n"] = n;
    json["num_labels"] = confusion.num_labels();
  } else {
    const NumberPairs numbers = read_numbers(options, streams);
    value = metric.of_scores(numbers.gold, numbers.predicted);
    if (!value) note = "undefined: all numbers of a file are equal, or it has only one line";
    n = static_cast<std::int64_t>(numbers.gold.size());
    json["score"] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    json["n"] = n;
  }
  if (!note.empty()) json["note"] = note;
  if (options.json) {
    streams.out << json.dump(1) << "\n";
    return;
  }
  streams.out << fmt::format("{} = {} (n = {})\n", metric.name,
                             value ? fmt::format("{:.{}f}", *value, options.width) : "undefined",
                             n);
  if (!note.empty()) streams.err << "petlab: " << note << "\n";
}

}  // namespace petlab::cli
