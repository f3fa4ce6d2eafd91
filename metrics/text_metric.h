#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/text_corpus.h"

namespace petlab::metrics {

/// The release of sacrebleu whose BLEU, chrF and TER are reproduced, as in signatures.
inline constexpr std::string_view kSacrebleuVersion = "2.6.0";

/// The parts of a signature other than the metric's options.
struct SignatureContext {
  std::int64_t references = 1;     // for every segment; -1: it varies ("nrefs:var")
  std::int64_t bootstrap = 0;      // resamples ("bs:1000"); 0: none
  std::int64_t randomisation = 0;  // trials ("ar:10000"); 0: none
  std::uint64_t seed = 12345;      // of either; omitted without them
};

/// sacrebleu's signature: the properties that a score depends on, in sacrebleu's order.
class Signature {
 public:
  struct Part {
    std::string name;
    std::string short_name;
    std::string value;
  };

  void add(std::string name, std::string short_name, std::string value);
  /// Adds nrefs, bs, ar and seed if they apply.
  void add_context(const SignatureContext& context);
  /// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
  std::string format() const;
  /// "#:1|c:mixed|e:no|tok:13a|s:exp|v:2.6.0"
  std::string format_short() const;
  std::span<const Part> parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

/// Computes the statistics of segments. Owns buffers, so each thread needs its own.
class SegmentScorer {
 public:
  virtual ~SegmentScorer() = default;
  /// Writes the segment's statistics_size() statistics to `statistics`. Texts must be valid UTF-8,
  /// which every SegmentSource checks.
  virtual void score(const Segment& segment, std::span<double> statistics) = 0;
};

/// A metric over a corpus of texts. Segments have statistics, and the corpus score is a function of
/// their sum alone. Immutable and shared by threads.
class TextMetric {
 public:
  virtual ~TextMetric() = default;
  /// The name as sacrebleu prints it: "BLEU", "chrF2++", "TER"; "rouge1" and so on.
  virtual std::string name() const = 0;
  virtual std::size_t statistics_size() const = 0;
  virtual std::unique_ptr<SegmentScorer> scorer() const = 0;
  /// The score for summed statistics, or a sentence score for those of one segment. BLEU, chrF and
  /// TER range to 100, ROUGE to 1.
  virtual double score(std::span<const double> statistics) const = 0;
  virtual Signature signature(const SignatureContext& context) const = 0;
};

/// Sums over a corpus.
struct CorpusStatistics {
  std::vector<double> sums;  // (statistics_size())
  std::int64_t segments = 0;
  std::int64_t references = 0;  // references per segment; -1: it varies
};

/// Called once per segment, in corpus order, by one thread at a time.
using SegmentSink = std::function<void(std::int64_t index, const Segment& segment,
                                       std::span<const double> statistics)>;

/// Reads the corpus to its end in constant memory. Sums are exact, so the result depends neither on
/// the order of the segments nor on `threads` (at least 1). Throws InputError without segments and
/// as the source does, always for the first faulty segment. If memory runs out, the message names
/// the segment.
CorpusStatistics evaluate(SegmentSource& source, const TextMetric& metric, int threads = 1,
                          const SegmentSink& sink = {});

/// Statistics of one segment, for sentence scores outside a corpus. Texts are checked as in
/// MemoryCorpus.
std::vector<double> evaluate_segment(const TextMetric& metric, std::string_view hypothesis,
                                     std::span<const std::string_view> references);

}  // namespace petlab::metrics
