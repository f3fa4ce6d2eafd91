#include "reports/samples.h"

#include <algorithm>
#include <tuple>

#include "metrics/seed_statistics.h"

namespace petlab::reports {
namespace {

constexpr double kConfidence = 0.95;

}  // namespace

void sort_samples(std::vector<Sample>& samples) {
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.seed, a.trial_ids) < std::tie(b.seed, b.trial_ids);
  });
}

void summarise(Measured& measured, double scale) {
  sort_samples(measured.samples);
  if (measured.samples.empty()) return;
  std::vector<double> values;
  for (Sample& sample : measured.samples) {
    if (!sample.value) continue;
    *sample.value *= scale;
    values.push_back(*sample.value);
  }
  if (values.size() < measured.samples.size()) {
    // A mean over only the defined seeds would look like one over all of them.
    measured.kind = Measured::Kind::undefined;
    return;
  }
  measured.kind = Measured::Kind::number;
  measured.mean = metrics::mean(values);
  measured.deviation = metrics::sample_deviation(values);
  measured.standard_error = metrics::standard_error(values);
  if (const auto interval = metrics::student_interval(values, kConfidence)) {
    measured.ci_low = interval->low;
    measured.ci_high = interval->high;
  }
}

void summarise_values(Measured& measured, double scale) {
  const bool all_equal = std::all_of(
      measured.samples.begin(), measured.samples.end(),
      [&](const Sample& sample) { return sample.value == measured.samples.front().value; });
  summarise(measured, scale);
  if (!all_equal) return;
  measured.spread = false;
  measured.planned = measured.n();
}

}  // namespace petlab::reports
