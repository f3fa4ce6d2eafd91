#include "metrics/metric_table.h"

#include <fmt/core.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/nearest_word.h"
#include "base/shown.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/correlation.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "metrics/token_match.h"

namespace petlab::metrics {
namespace {

constexpr MetricRow labels(std::string_view name, std::string_view help,
                           double (*function)(const Confusion&)) {
  return {.name = name, .help = help, .input = MetricInput::labels, .of_labels = function};
}

constexpr MetricRow scores(std::string_view name, std::string_view help,
                           std::optional<double> (*function)(std::span<const double>,
                                                             std::span<const double>)) {
  return {.name = name, .help = help, .input = MetricInput::scores, .of_scores = function};
}

template <class Metric>
std::unique_ptr<TextMetric> with_defaults() {
  return std::make_unique<Metric>();
}

template <RougeType type>
std::unique_ptr<TextMetric> stemmed_rouge() {
  return std::make_unique<Rouge>(RougeOptions{.type = type, .stem = true});
}

constexpr MetricRow text(std::string_view name, std::string_view help, double printed_scale,
                         std::unique_ptr<TextMetric> (*text_metric)(),
                         bool higher_is_better = true) {
  return {.name = name,
          .help = help,
          .input = MetricInput::text,
          .higher_is_better = higher_is_better,
          .printed_scale = printed_scale,
          .text_metric = text_metric};
}

constexpr std::array kMetrics = {
    text("bleu", "BLEU as sacrebleu computes it, 0 to 100", 1, with_defaults<Bleu>),
    text("chrf", "chrF, and with --word-order 2 chrF++, as sacrebleu computes it, 0 to 100", 1,
         with_defaults<Chrf>),
    text("ter", "translation edit rate as sacrebleu computes it, in percent; lower is better", 1,
         with_defaults<Ter>, false),
    text("rouge1", "ROUGE-1 F of single words as rouge-score computes it, 0 to 1", 100,
         stemmed_rouge<RougeType::rouge1>),
    text("rouge2", "ROUGE-2 F of pairs of words as rouge-score computes it, 0 to 1", 100,
         stemmed_rouge<RougeType::rouge2>),
    text("rougeL", "ROUGE-L F of the longest common subsequence of the whole text, 0 to 1", 100,
         stemmed_rouge<RougeType::rougeL>),
    text("rougeLsum", "ROUGE-L F over sentences on lines of their own, 0 to 1", 100,
         stemmed_rouge<RougeType::rougeLsum>),
    text("exact-match", "fraction of texts whose tokens equal their reference's", 100,
         with_defaults<ExactMatch>),
    text("token-error-rate", "token edits per reference token; lower is better", 100,
         with_defaults<TokenErrorRate>, false),
    labels("accuracy", "fraction of correct labels", accuracy),
    labels("f1", "F1 of class 1 against class 0", f1),
    labels("f1-macro", "mean of the F1 of each class that occurs", f1_macro),
    labels("matthews", "Matthews correlation of labels, -1 to 1", matthews),
    scores("pearson", "Pearson correlation of numbers, -1 to 1", pearson),
    scores("spearman", "Spearman rank correlation of numbers, -1 to 1", spearman),
};

std::mutex declaring;

std::map<std::string, bool, std::less<>>& declared_directions() {
  static std::map<std::string, bool, std::less<>> directions;
  return directions;
}

}  // namespace

std::optional<double> MetricRow::of_texts(std::span<const std::string> references,
                                          std::span<const std::string> generated) const {
  if (references.size() != generated.size()) {
    throw std::invalid_argument(fmt::format("{} references and {} texts: the numbers must be equal",
                                            references.size(), generated.size()));
  }
  if (references.empty()) return std::nullopt;
  MemoryCorpus corpus({generated.begin(), generated.end()},
                      {MemoryCorpus::Stream(references.begin(), references.end())});
  const std::unique_ptr<TextMetric> metric = text_metric();
  return metric->score(evaluate(corpus, *metric).sums);
}

std::span<const MetricRow> metric_table() { return kMetrics; }

const MetricRow* find_metric(std::string_view name) {
  for (const MetricRow& row : kMetrics) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::optional<bool> higher_is_better(std::string_view metric) {
  if (metric == "loss") return false;
  if (const MetricRow* row = find_metric(metric)) return row->higher_is_better;
  const std::lock_guard lock(declaring);
  const auto found = declared_directions().find(metric);
  return found == declared_directions().end() ? std::nullopt : std::optional(found->second);
}

void declare_direction(const std::string& metric, bool higher) {
  std::optional<bool> known = higher_is_better(metric);
  if (!known) {
    const std::lock_guard lock(declaring);
    known = declared_directions().try_emplace(metric, higher).first->second;
  }
  if (*known == higher) return;
  throw std::invalid_argument(fmt::format(
      "metric {}: found a declaration that {} values are better, expected {}",
      base::in_quotes(metric), higher ? "higher" : "lower", *known ? "higher" : "lower"));
}

const MetricRow& metric_named(std::string_view name) {
  if (const MetricRow* row = find_metric(name)) return *row;
  std::vector<std::string_view> names;
  for (const MetricRow& row : kMetrics) names.push_back(row.name);
  throw std::invalid_argument(base::unknown_word("metric", name, names));
}

}  // namespace petlab::metrics
