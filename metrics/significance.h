#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/text_metric.h"

namespace petlab::metrics {

/// The statistics of every segment of one system, segments in rows.
struct SystemStatistics {
  std::vector<double> values;  // (segments, columns)
  std::size_t columns = 0;
  std::int64_t references = 0;  // as in CorpusStatistics
  std::size_t segments() const { return columns == 0 ? 0 : values.size() / columns; }
};

/// Reads a corpus and keeps each segment's statistics (8 · statistics_size() bytes a segment).
SystemStatistics collect_statistics(SegmentSource& source, const TextMetric& metric,
                                    int threads = 1);

/// How to resample. Defaults are sacrebleu's.
struct ResamplingOptions {
  std::int64_t samples = 0;    // 0: 1,000 for the bootstrap, 10,000 for randomisation
  std::uint64_t seed = 12345;  // of numpy's default_rng, whose draws are reproduced
  int threads = 1;             // has no influence on results
};

/// The mean of bootstrapped scores and half the width of their 95 % interval.
struct BootstrapInterval {
  double mean = 0.0;
  double half_width = 0.0;
};

/// sacrebleu's confidence interval by bootstrap resampling. Sums are exact here and in float32
/// there, so values agree to about 1e-5 of a point. Throws InputError for no segments.
BootstrapInterval bootstrap_interval(const TextMetric& metric, const SystemStatistics& system,
                                     const ResamplingOptions& options = {});

/// A system beside the baseline.
struct PairedResult {
  double score = 0.0;
  double baseline_score = 0.0;
  /// Every segment has the same statistics as the baseline's: the systems do not differ, and there
  /// is no p value (sacrebleu prints its smallest one).
  bool identical = false;
  std::optional<double> p_value;
  std::optional<BootstrapInterval> interval;           // the system's; only from the bootstrap
  std::optional<BootstrapInterval> baseline_interval;  // likewise
};

/// sacrebleu's paired bootstrap test (Koehn 2004). Throws InputError where the systems have
/// different numbers of segments or none.
PairedResult paired_bootstrap(const TextMetric& metric, const SystemStatistics& baseline,
                              const SystemStatistics& system,
                              const ResamplingOptions& options = {});

/// sacrebleu's paired approximate randomisation test (Riezler and Maxwell 2005). A trial whose
/// difference equals the observed one does not count as greater: sums are exact, where sacrebleu's
/// depend on the order of the segments and make p up to 1 of such ties. Throws likewise.
PairedResult paired_randomisation(const TextMetric& metric, const SystemStatistics& baseline,
                                  const SystemStatistics& system,
                                  const ResamplingOptions& options = {});

}  // namespace petlab::metrics
