#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/score.h"
#include "cli/score_files.h"
#include "metrics/classification.h"
#include "metrics/error.h"
#include "metrics/t5_labels.h"
#include "metrics/text_corpus.h"

namespace petlab::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A line as a message shows it.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return fmt::format("\"{}\"", text);
  // Not within a UTF-8 character.
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("\"{}…\"", text.substr(0, end));
}

std::int64_t label_of(std::string_view line, std::int64_t num_labels, const std::string& file,
                      std::int64_t number) {
  const std::string_view text = trimmed(line);
  std::int64_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (text.empty() || end != text.data() + text.size() || error != std::errc() || label < 0 ||
      label >= num_labels) {
    throw metrics::InputError(fmt::format("{}:{}: found {}, wanted a label from 0 to {}", file,
                                          number, shown(text), num_labels - 1));
  }
  return label;
}

double number_of(std::string_view line, const std::string& file, std::int64_t number) {
  if (const auto value = metrics::parse_score_text(line)) return *value;
  throw metrics::InputError(fmt::format("{}:{}: found {}, wanted a finite decimal number", file,
                                        number, shown(trimmed(line))));
}

// Calls row(predicted, gold, line number) for each line of the two files.
template <class Row>
void for_each_line(const ScoreOptions& options, Streams streams, Row row) {
  if (options.references.size() != 1) {
    throw std::invalid_argument(fmt::format("--ref is there {} times, {} takes one",
                                            options.references.size(), options.metric));
  }
  const auto corpus = open_corpus(options, options.hypotheses, streams);
  metrics::SegmentBatch batch;
  for (;;) {
    corpus->read(batch, 4096);
    if (batch.size() == 0) return;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const metrics::Segment segment = batch[i];
      row(segment.hypothesis, segment.references.front(),
          batch.first() + static_cast<std::int64_t>(i) + 1);
    }
  }
}

// Counts over as many classes as the labels need, in memory that does not grow with the lines.
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
  for_each_line(
      options, streams, [&](std::string_view predicted, std::string_view gold, std::int64_t line) {
        const std::int64_t p = label_of(predicted, most, shown_name(options.hypotheses), line);
        counts.add(label_of(gold, most, shown_name(options.references.front()), line), p);
      });
  return counts.confusion(options.num_labels.value_or(std::max<std::int64_t>(counts.side(), 2)));
}

struct Numbers {
  std::vector<double> gold;
  std::vector<double> predicted;
};

Numbers read_numbers(const ScoreOptions& options, Streams streams) {
  Numbers numbers;
  for_each_line(
      options, streams, [&](std::string_view predicted, std::string_view gold, std::int64_t line) {
        numbers.predicted.push_back(number_of(predicted, shown_name(options.hypotheses), line));
        numbers.gold.push_back(number_of(gold, shown_name(options.references.front()), line));
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
    const Numbers numbers = read_numbers(options, streams);
    value = metric.of_scores(numbers.gold, numbers.predicted);
    if (!value) note = "undefined: all numbers of a file are equal, or there is one line only";
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
