#include "metrics/example_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/shown.h"
#include "metrics/error.h"
#include "metrics/file_corpus.h"
#include "metrics/significance.h"
#include "metrics/t5_labels.h"

namespace petlab::metrics {
namespace {

using Times = std::span<const std::uint32_t>;

constexpr std::string_view kNoAnswer = "none";
constexpr std::int64_t kNoClass = -1;

// The predictions of both systems for one seed, as numbers.
template <class Value>
struct NumberedPredictions {
  std::vector<Value> a;
  std::vector<Value> b;
};

std::optional<std::int64_t> class_of_line(std::string_view line) {
  std::int64_t label = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), label);
  if (error != std::errc() || end != line.data() + line.size() || label < 0) return std::nullopt;
  return label;
}

std::optional<std::int64_t> prediction_of_line(std::string_view line) {
  return line == kNoAnswer ? kNoClass : class_of_line(line);
}

std::optional<double> score_of_line(std::string_view line) {
  return line == kNoAnswer ? kInvalidScore : parse_score_text(line);
}

template <class Value>
std::vector<Value> parsed(const std::vector<std::string>& lines, const std::string& seed,
                          std::string_view expected,
                          std::optional<Value> (*parse)(std::string_view)) {
  std::vector<Value> values;
  values.reserve(lines.size());
  for (const std::string& line : lines) {
    const auto value = parse(line);
    if (!value) {
      throw InputError(fmt::format("seed {}, example {}: found {}, expected {}", seed,
                                   values.size() + 1, base::in_quotes(line), expected));
    }
    values.push_back(*value);
  }
  return values;
}

template <class Value>
std::vector<NumberedPredictions<Value>> numbered(std::span<const SeedPredictions> seeds,
                                                 std::string_view expected,
                                                 std::optional<Value> (*parse)(std::string_view)) {
  std::vector<NumberedPredictions<Value>> pairs;
  for (const SeedPredictions& seed : seeds) {
    pairs.push_back({parsed(seed.a.predicted, seed.seed, expected, parse),
                     parsed(seed.b.predicted, seed.seed, expected, parse)});
  }
  return pairs;
}

void require_same_examples(std::span<const SeedPredictions> seeds) {
  const std::vector<std::string>& first = seeds.front().a.gold;
  for (const SeedPredictions& seed : seeds) {
    for (const KeptPredictions* const system : {&seed.a, &seed.b}) {
      const std::vector<std::string>& gold = system->gold;
      if (gold.size() != first.size() || system->predicted.size() != gold.size()) {
        throw InputError(fmt::format(
            "seed {}: {} answers and {} predictions, expected {} as of the first seed; all systems "
            "and seeds must be scored on the same examples",
            seed.seed, gold.size(), system->predicted.size(), first.size()));
      }
      const auto [found, expected] = std::mismatch(gold.begin(), gold.end(), first.begin());
      if (found != gold.end()) {
        throw InputError(fmt::format(
            "seed {}, example {}: the answer is {}, expected {} as of the first seed; all systems "
            "and seeds must be scored on the same examples",
            seed.seed, found - gold.begin() + 1, base::in_quotes(*found),
            base::in_quotes(*expected)));
      }
    }
  }
}

// Each prediction is a cell of the confusion: (gold, predicted), the last column meaning no class.
class LabelExamples : public PairedExamples {
 public:
  LabelExamples(const MetricRow& metric, std::int64_t num_labels,
                const std::vector<std::int64_t>& gold,
                const std::vector<NumberedPredictions<std::int64_t>>& predicted)
      : metric_(metric), num_labels_(num_labels), examples_(gold.size()) {
    for (const auto& [a, b] : predicted) cells_.push_back({cells(gold, a), cells(gold, b)});
  }

  std::size_t seeds() const override { return cells_.size(); }
  std::size_t examples() const override { return examples_; }

  std::optional<double> difference(std::size_t seed, Times times) const override {
    return value(counts(cells_[seed].a, times)) - value(counts(cells_[seed].b, times));
  }

  // Few cells occur, so leaving out an example gives few distinct values.
  std::optional<std::vector<double>> leave_one_out(std::size_t seed) const override {
    const std::vector<std::uint32_t> once(examples_, 1);
    std::vector<double> without(examples_, 0);
    for (const auto& [cells, sign] :
         {std::pair(&cells_[seed].a, 1), std::pair(&cells_[seed].b, -1)}) {
      Counts all = counts(*cells, once);
      std::vector<std::optional<double>> known(all.size());
      for (std::size_t i = 0; i < examples_; ++i) {
        const std::uint32_t cell = (*cells)[i];
        if (!known[cell]) {
          --all[cell];
          known[cell] = value(all);
          ++all[cell];
        }
        without[i] += sign * *known[cell];
      }
    }
    return without;
  }

 private:
  using Cells = std::vector<std::uint32_t>;  // (examples)
  using Counts = std::vector<std::int64_t>;  // (num_labels, num_labels + 1)

  Cells cells(const std::vector<std::int64_t>& gold,
              const std::vector<std::int64_t>& predicted) const {
    Cells found(gold.size());
    for (std::size_t i = 0; i < gold.size(); ++i) {
      const std::int64_t column = predicted[i] == kNoClass ? num_labels_ : predicted[i];
      found[i] = static_cast<std::uint32_t>(gold[i] * (num_labels_ + 1) + column);
    }
    return found;
  }

  Counts counts(const Cells& cells, Times times) const {
    Counts sums(static_cast<std::size_t>(num_labels_ * (num_labels_ + 1)), 0);
    for (std::size_t i = 0; i < cells.size(); ++i) sums[cells[i]] += times[i];
    return sums;
  }

  double value(const Counts& counts) const {
    Confusion confusion(num_labels_);
    auto count = counts.begin();
    for (std::int64_t gold = 0; gold < num_labels_; ++gold) {
      for (std::int64_t label = 0; label < num_labels_; ++label, ++count) {
        if (*count > 0) confusion.add(gold, label, *count);
      }
      if (*count > 0) confusion.add_invalid(gold, *count);
      ++count;
    }
    return metric_.of_labels(confusion);
  }

  const MetricRow& metric_;
  std::int64_t num_labels_;
  std::size_t examples_;
  std::vector<NumberedPredictions<std::uint32_t>> cells_;
};

class ScoreExamples : public PairedExamples {
 public:
  ScoreExamples(const MetricRow& metric, std::vector<double> gold,
                std::vector<NumberedPredictions<double>> predicted)
      : metric_(metric), gold_(std::move(gold)), predicted_(std::move(predicted)) {}

  std::size_t seeds() const override { return predicted_.size(); }
  std::size_t examples() const override { return gold_.size(); }

  std::optional<double> difference(std::size_t seed, Times times) const override {
    const std::vector<double> gold = sample(gold_, times);
    const auto a = metric_.of_scores(gold, sample(predicted_[seed].a, times));
    const auto b = metric_.of_scores(gold, sample(predicted_[seed].b, times));
    return a && b ? std::optional(*a - *b) : std::nullopt;
  }

 private:
  static std::vector<double> sample(const std::vector<double>& values, Times times) {
    std::vector<double> drawn;
    drawn.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) drawn.insert(drawn.end(), times[i], values[i]);
    return drawn;
  }

  const MetricRow& metric_;
  std::vector<double> gold_;
  std::vector<NumberedPredictions<double>> predicted_;
};

// Text metrics are functions of sums over examples.
class TextExamples : public PairedExamples {
 public:
  TextExamples(const MetricRow& metric, std::span<const SeedPredictions> seeds, int threads)
      : metric_(metric.text_metric()), examples_(seeds.front().a.gold.size()) {
    const auto statistics = [&](const KeptPredictions& kept) {
      MemoryCorpus corpus(kept.predicted, {{kept.gold.begin(), kept.gold.end()}});
      return collect_statistics(corpus, *metric_, threads);
    };
    for (const SeedPredictions& seed : seeds) {
      systems_.push_back({statistics(seed.a), statistics(seed.b)});
    }
  }

  std::size_t seeds() const override { return systems_.size(); }
  std::size_t examples() const override { return examples_; }

  std::optional<double> difference(std::size_t seed, Times times) const override {
    return metric_->score(sums(systems_[seed].a, times)) -
           metric_->score(sums(systems_[seed].b, times));
  }

  std::optional<std::vector<double>> leave_one_out(std::size_t seed) const override {
    const std::vector<std::uint32_t> once(examples_, 1);
    std::vector<double> without(examples_, 0);
    for (const auto& [system, sign] :
         {std::pair(&systems_[seed].a, 1), std::pair(&systems_[seed].b, -1)}) {
      const std::vector<double> all = sums(*system, once);
      std::vector<double> rest(all.size());
      for (std::size_t i = 0; i < examples_; ++i) {
        const double* const row = system->values.data() + i * rest.size();
        for (std::size_t c = 0; c < rest.size(); ++c) rest[c] = all[c] - row[c];
        without[i] += sign * metric_->score(rest);
      }
    }
    return without;
  }

 private:
  struct Pair {
    SystemStatistics a;
    SystemStatistics b;
  };

  static std::vector<double> sums(const SystemStatistics& system, Times times) {
    std::vector<double> sums(system.columns, 0);
    const double* row = system.values.data();
    for (const std::uint32_t count : times) {
      for (double& sum : sums) sum += count * *row++;
    }
    return sums;
  }

  std::unique_ptr<TextMetric> metric_;
  std::size_t examples_;
  std::vector<Pair> systems_;
};

ExampleComparison compare_labels(const MetricRow& metric, std::span<const SeedPredictions> seeds,
                                 const CrossedBootstrapOptions& options, std::int64_t num_labels) {
  const auto& first = seeds.front();
  const auto gold = parsed(first.a.gold, first.seed, "a class", class_of_line);
  const auto predicted = numbered(seeds, "a class or \"none\"", prediction_of_line);
  std::int64_t needed = std::max<std::int64_t>(2, *std::max_element(gold.begin(), gold.end()) + 1);
  for (const auto& [a, b] : predicted) {
    for (const auto* const labels : {&a, &b}) {
      needed = std::max(needed, *std::max_element(labels->begin(), labels->end()) + 1);
    }
  }
  if (num_labels != 0 && needed > num_labels) {
    throw InputError(fmt::format("the predictions have a class {}, the task has {} classes",
                                 needed - 1, num_labels));
  }
  const LabelExamples pairs(metric, num_labels == 0 ? needed : num_labels, gold, predicted);
  ExampleComparison result;
  if (metric.of_labels == accuracy) {
    for (const auto& [a, b] : predicted) {
      std::int64_t only_a = 0;
      std::int64_t only_b = 0;
      for (std::size_t i = 0; i < gold.size(); ++i) {
        only_a += a[i] == gold[i] && b[i] != gold[i];
        only_b += a[i] != gold[i] && b[i] == gold[i];
      }
      result.mcnemar.push_back(mcnemar(only_a, only_b));
    }
  }
  result.bootstrap = crossed_bootstrap(pairs, options);
  return result;
}

std::optional<CrossedBootstrap> compare_scores(const MetricRow& metric,
                                               std::span<const SeedPredictions> seeds,
                                               const CrossedBootstrapOptions& options) {
  const auto& first = seeds.front();
  return crossed_bootstrap(
      ScoreExamples(metric, parsed(first.a.gold, first.seed, "a number", parse_score_text),
                    numbered(seeds, "a number or \"none\"", score_of_line)),
      options);
}

}  // namespace

KeptPredictions read_predictions(const std::filesystem::path& gold,
                                 const std::filesystem::path& predicted) {
  std::vector<LineReader> references;
  references.emplace_back(gold.string());
  FileCorpus corpus(LineReader(predicted.string()), std::move(references),
                    {.json_lines = predicted.extension() == ".jsonl"});
  KeptPredictions kept;
  constexpr std::size_t kBatch = 1024;
  SegmentBatch batch;
  for (corpus.read(batch, kBatch); batch.size() > 0; corpus.read(batch, kBatch)) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      kept.predicted.emplace_back(batch[i].hypothesis);
      kept.gold.emplace_back(batch[i].references.front());
    }
  }
  return kept;
}

Limit limit_of(const CrossedBootstrap& bootstrap) {
  const bool more_seeds = !bootstrap.seed_error || *bootstrap.seed_error >= bootstrap.example_error;
  return more_seeds ? Limit::seeds : Limit::examples;
}

ExampleComparison compare_examples(const MetricRow& metric, std::span<const SeedPredictions> seeds,
                                   const CrossedBootstrapOptions& options,
                                   std::int64_t num_labels) {
  if (seeds.empty()) throw std::invalid_argument("no seeds: a comparison needs at least 1");
  require_same_examples(seeds);
  ExampleComparison result;
  switch (metric.input) {
    case MetricInput::labels:
      result = compare_labels(metric, seeds, options, num_labels);
      break;
    case MetricInput::scores:
      result.bootstrap = compare_scores(metric, seeds, options);
      break;
    case MetricInput::text:
      result.bootstrap = crossed_bootstrap(TextExamples(metric, seeds, options.threads), options);
      break;
  }
  result.examples = static_cast<std::int64_t>(seeds.front().a.gold.size());
  return result;
}

}  // namespace petlab::metrics
