#include "metrics/significance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "metrics/error.h"
#include "metrics/exact_sum.h"
#include "metrics/numpy_random.h"
#include "metrics/resampling.h"

namespace petlab::metrics {
namespace {

constexpr std::int64_t kBootstrapSamples = 1000;
constexpr std::int64_t kRandomisationSamples = 10000;

void check(const TextMetric& metric, const SystemStatistics& system,
           const ResamplingOptions& options) {
  if (system.segments() == 0) {
    throw InputError("the corpus is empty, expected at least one segment");
  }
  if (system.columns != metric.statistics_size()) {
    throw std::invalid_argument(fmt::format("the statistics have {} columns, {} has {}",
                                            system.columns, metric.name(),
                                            metric.statistics_size()));
  }
  if (options.samples < 0) {
    throw std::invalid_argument(
        fmt::format("the number of samples is {}, must be at least 0", options.samples));
  }
  if (options.threads < 1) {
    throw std::invalid_argument(fmt::format("threads is {}, must be at least 1", options.threads));
  }
}

void check_pair(const TextMetric& metric, const SystemStatistics& baseline,
                const SystemStatistics& system, const ResamplingOptions& options) {
  check(metric, baseline, options);
  check(metric, system, options);
  if (baseline.segments() != system.segments()) {
    throw InputError(fmt::format("the baseline has {} segments, the system has {}",
                                 baseline.segments(), system.segments()));
  }
}

// True if doubles add up exactly in any order for all possible resamples: counts do, fractions
// (ROUGE, mean reference lengths) do not.
bool adds_up_exactly(const SystemStatistics& system) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const double most = kExact / static_cast<double>(system.segments());
  return std::all_of(system.values.begin(), system.values.end(), [most](double value) {
    return std::abs(value) <= most && value == std::floor(value);
  });
}

// The exact sums of some segments' statistics. The observed score and those of all trials use it:
// with different rounding, equal scores would look different.
class SegmentSums {
 public:
  SegmentSums(std::size_t columns, bool plain)
      : plain_(plain ? columns : 0), exact_(plain ? 0 : columns) {}

  void add(const double* statistics) {
    for (std::size_t c = 0; c < plain_.size(); ++c) plain_[c] += statistics[c];
    for (std::size_t c = 0; c < exact_.size(); ++c) exact_[c].add(statistics[c]);
  }

  std::vector<double> sums() const {
    std::vector<double> sums = plain_;
    for (const ExactSum& sum : exact_) sums.push_back(sum.round());
    return sums;
  }

 private:
  // Only one of the two is used.
  std::vector<double> plain_;
  std::vector<ExactSum> exact_;
};

double total_score(const TextMetric& metric, const SystemStatistics& system) {
  SegmentSums sums(system.columns, adds_up_exactly(system));
  for (std::size_t i = 0; i < system.values.size(); i += system.columns) {
    sums.add(system.values.data() + i);
  }
  return metric.score(sums.sums());
}

std::vector<std::vector<double>> bootstrap_scores(const TextMetric& metric,
                                                  std::span<const SystemStatistics* const> systems,
                                                  std::int64_t samples,
                                                  const ResamplingOptions& options) {
  const std::size_t segments = systems.front()->segments();
  std::vector<bool> plain;
  for (const SystemStatistics* const system : systems) plain.push_back(adds_up_exactly(*system));
  std::vector<std::vector<double>> scores(systems.size(),
                                          std::vector<double>(static_cast<std::size_t>(samples)));
  NumpyRandom random(options.seed);
  for_each_sample<std::vector<std::uint32_t>>(
      samples, options.threads,
      [&](std::vector<std::uint32_t>& row) {
        row.resize(segments);
        for (std::uint32_t& index : row) index = random.below(segments);
      },
      [&](std::int64_t sample, const std::vector<std::uint32_t>& row) {
        for (std::size_t s = 0; s < systems.size(); ++s) {
          const std::size_t columns = systems[s]->columns;
          SegmentSums sums(columns, plain[s]);
          for (const std::uint32_t index : row) {
            sums.add(systems[s]->values.data() + index * columns);
          }
          scores[s][static_cast<std::size_t>(sample)] = metric.score(sums.sums());
        }
      });
  return scores;
}

double mean_of(std::span<const double> values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.round() / static_cast<double>(values.size());
}

// The mean, and half the distance between the scores that exclude a fortieth at each end.
BootstrapInterval interval_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const std::size_t low = scores.size() / 40;
  return {mean_of(scores), 0.5 * (scores[scores.size() - low - 1] - scores[low])};
}

double p_value(std::span<const double> statistics, double difference) {
  const auto larger = std::count_if(statistics.begin(), statistics.end(),
                                    [difference](double s) { return s > difference; });
  return static_cast<double>(larger + 1) / static_cast<double>(statistics.size() + 1);
}

PairedResult compare(const TextMetric& metric, const SystemStatistics& baseline,
                     const SystemStatistics& system) {
  PairedResult result;
  result.score = total_score(metric, system);
  result.baseline_score = total_score(metric, baseline);
  result.identical = system.values == baseline.values;
  return result;
}

}  // namespace

SystemStatistics collect_statistics(SegmentSource& source, const TextMetric& metric, int threads) {
  SystemStatistics system;
  system.columns = metric.statistics_size();
  const CorpusStatistics corpus =
      evaluate(source, metric, threads,
               [&system](std::int64_t, const Segment&, std::span<const double> statistics) {
                 system.values.insert(system.values.end(), statistics.begin(), statistics.end());
               });
  system.references = corpus.references;
  return system;
}

BootstrapInterval bootstrap_interval(const TextMetric& metric, const SystemStatistics& system,
                                     const ResamplingOptions& options) {
  check(metric, system, options);
  const std::int64_t samples = options.samples == 0 ? kBootstrapSamples : options.samples;
  const SystemStatistics* const one[] = {&system};
  return interval_of(bootstrap_scores(metric, one, samples, options).front());
}

PairedResult paired_bootstrap(const TextMetric& metric, const SystemStatistics& baseline,
                              const SystemStatistics& system, const ResamplingOptions& options) {
  check_pair(metric, baseline, system, options);
  PairedResult result = compare(metric, baseline, system);
  const std::int64_t samples = options.samples == 0 ? kBootstrapSamples : options.samples;
  const SystemStatistics* const both[] = {&baseline, &system};
  const auto scores = bootstrap_scores(metric, both, samples, options);
  result.baseline_interval = interval_of(scores[0]);
  result.interval = interval_of(scores[1]);
  if (result.identical) return result;
  std::vector<double> differences;
  for (std::size_t i = 0; i < scores[0].size(); ++i) {
    differences.push_back(std::abs(scores[1][i] - scores[0][i]));
  }
  const double mean = mean_of(differences);
  for (double& difference : differences) difference -= mean;
  result.p_value = p_value(differences, std::abs(result.baseline_score - result.score));
  return result;
}

PairedResult paired_randomisation(const TextMetric& metric, const SystemStatistics& baseline,
                                  const SystemStatistics& system,
                                  const ResamplingOptions& options) {
  check_pair(metric, baseline, system, options);
  PairedResult result = compare(metric, baseline, system);
  if (result.identical) return result;
  const std::int64_t samples = options.samples == 0 ? kRandomisationSamples : options.samples;
  const std::size_t segments = system.segments();
  const std::size_t columns = system.columns;
  const bool plain = adds_up_exactly(baseline) && adds_up_exactly(system);
  std::vector<double> differences(static_cast<std::size_t>(samples));
  NumpyRandom random(options.seed);
  for_each_sample<std::vector<char>>(
      samples, options.threads,
      [&](std::vector<char>& row) {
        row.resize(segments);
        for (char& flipped : row) flipped = random.next_bool() ? 1 : 0;
      },
      [&](std::int64_t sample, const std::vector<char>& row) {
        SegmentSums first(columns, plain);
        SegmentSums second(columns, plain);
        for (std::size_t i = 0; i < segments; ++i) {
          const double* const a = baseline.values.data() + i * columns;
          const double* const b = system.values.data() + i * columns;
          first.add(row[i] != 0 ? a : b);
          second.add(row[i] != 0 ? b : a);
        }
        differences[static_cast<std::size_t>(sample)] =
            std::abs(metric.score(first.sums()) - metric.score(second.sums()));
      });
  result.p_value = p_value(differences, std::abs(result.baseline_score - result.score));
  return result;
}

}  // namespace petlab::metrics
