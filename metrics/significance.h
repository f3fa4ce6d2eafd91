#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/text_metric.h"

namespace petlab::metrics {

/// The statistics of all segments of a system, one row per segment.
struct SystemStatistics {
  std::vector<double> values;  // (segments, columns)
  std::size_t columns = 0;
  std::int64_t references = 0;  // as in CorpusStatistics
  std::size_t segments() const { return columns == 0 ? 0 : values.size() / columns; }
};

/// Reads a corpus and keeps the statistics of each segment (8 · statistics_size() bytes each).
SystemStatistics collect_statistics(SegmentSource& source, const TextMetric& metric,
                                    int threads = 1);

/// Resampling options. Defaults are sacrebleu's.
struct ResamplingOptions {
  std::int64_t samples = 0;    // 0: 1,000 for the bootstrap, 10,000 for randomisation
  std::uint64_t seed = 12345;  // of numpy's default_rng, whose draws are reproduced
  int threads = 1;             // does not affect results
};

/// The mean of bootstrapped scores and half the width of their 95 % interval.
struct BootstrapInterval {
  double mean = 0.0;
  double half_width = 0.0;
};

/// sacrebleu's confidence interval by bootstrap resampling. Sums are exact here but float32 in
/// sacrebleu, so values agree to about 1e-5 of a point. Throws InputError without segments.
BootstrapInterval bootstrap_interval(const TextMetric& metric, const SystemStatistics& system,
                                     const ResamplingOptions& options = {});

/// A system compared with the baseline.
struct PairedResult {
  double score = 0.0;
  double baseline_score = 0.0;
  /// True if every segment has the same statistics as in the baseline: the systems do not differ,
  /// and there is no p value (sacrebleu prints the smallest possible one).
  bool identical = false;
  std::optional<double> p_value;
  std::optional<BootstrapInterval> interval;           // the system's; only from the bootstrap
  std::optional<BootstrapInterval> baseline_interval;  // likewise
};

/// sacrebleu's paired bootstrap test (Koehn 2004). Throws InputError if the systems have different
/// numbers of segments or none.
PairedResult paired_bootstrap(const TextMetric& metric, const SystemStatistics& baseline,
                              const SystemStatistics& system,
                              const ResamplingOptions& options = {});

/// sacrebleu's paired approximate randomisation test (Riezler and Maxwell 2005). A trial whose
/// difference equals the observed one does not count as greater. Sums are exact here; sacrebleu's
/// depend on the order of the segments, which can let such ties raise p up to 1. Throws like
/// paired_bootstrap().
PairedResult paired_randomisation(const TextMetric& metric, const SystemStatistics& baseline,
                                  const SystemStatistics& system,
                                  const ResamplingOptions& options = {});

}  // namespace petlab::metrics
