#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "cli/scoring/score.h"
#include "cli/scoring/score_files.h"
#include "cli/scoring/text_scorer.h"
#include "metrics/significance.h"
#include "metrics/text_metric.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

// Name, score and signature, and sacrebleu's signature fields.
ordered_json score_json(const Scorer& scorer, double score, const ScoreParts& parts,
                        const metrics::Signature& signature, const ScoreOptions& options) {
  ordered_json json = {{"name", scorer.metric->name()},
                       {"score", score},
                       {"signature", signature_text(signature, options)}};
  if (!parts.verbose.empty()) json["verbose_score"] = parts.verbose;
  for (const metrics::Signature::Part& part : signature.parts()) json[part.name] = part.value;
  json.update(parts.json);
  return json;
}

std::string score_line(const Scorer& scorer, const std::string& score, const ScoreParts& parts,
                       const metrics::Signature& signature, const ScoreOptions& options) {
  return fmt::format("{}|{} = {}{}{}\n", scorer.metric->name(), signature_text(signature, options),
                     score, parts.verbose.empty() ? "" : " ", parts.verbose);
}

void print_corpus(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, options.hypotheses, streams);
  const metrics::CorpusStatistics statistics =
      metrics::evaluate(*corpus, *scorer.metric, options.threads);
  const double score = scorer.metric->score(statistics.sums);
  const ScoreParts parts = scorer.parts(statistics.sums);
  const metrics::Signature signature =
      scorer.metric->signature({.references = statistics.references});
  if (options.json) {
    ordered_json json = score_json(scorer, score, parts, signature, options);
    json["segments"] = statistics.segments;
    streams.out << json.dump(1) << "\n";
  } else {
    streams.out << score_line(scorer, fmt::format("{:.{}f}", score, options.width), parts,
                              signature, options);
  }
}

// Prints one score per line, in the order of the files and in constant memory.
void print_sentences(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, options.hypotheses, streams);
  metrics::evaluate(
      *corpus, *scorer.metric, options.threads,
      [&](std::int64_t index, const metrics::Segment& segment, std::span<const double> statistics) {
        const double score = scorer.metric->score(statistics);
        const ScoreParts parts = scorer.parts(statistics);
        const metrics::Signature signature = scorer.metric->signature(
            {.references = static_cast<std::int64_t>(segment.references.size())});
        if (options.json) {
          ordered_json json = {{"line", index + 1}};
          json.update(score_json(scorer, score, parts, signature, options));
          streams.out << json.dump() << "\n";
        } else {
          streams.out << score_line(scorer, fmt::format("{:.{}f}", score, options.width), parts,
                                    signature, options);
        }
      });
}

void print_interval(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const metrics::SystemStatistics system =
      collect_system(scorer, options.hypotheses, options, streams);
  const metrics::BootstrapInterval interval =
      metrics::bootstrap_interval(*scorer.metric, system,
                                  {.samples = options.resampling.confidence_n,
                                   .seed = options.resampling.seed,
                                   .threads = options.threads});
  const std::vector<double> statistics = sums_of(system);
  const double score = scorer.metric->score(statistics);
  const ScoreParts parts = scorer.parts(statistics);
  const metrics::Signature signature =
      scorer.metric->signature({.references = system.references,
                                .bootstrap = options.resampling.confidence_n,
                                .seed = options.resampling.seed});
  const std::string confidence = fmt::format("μ = {:.{}f} ± {:.{}f}", interval.mean, options.width,
                                             interval.half_width, options.width);
  if (options.json) {
    ordered_json json = score_json(scorer, score, parts, signature, options);
    json["confidence_mean"] = interval.mean;
    json["confidence_var"] = interval.half_width;
    json["confidence"] = confidence;
    json["segments"] = system.segments();
    streams.out << json.dump(1) << "\n";
  } else {
    streams.out << score_line(scorer, fmt::format("{:.{}f} ({})", score, options.width, confidence),
                              parts, signature, options);
  }
}

ordered_json interval_json(const metrics::BootstrapInterval& interval) {
  return {{"mean", interval.mean}, {"half_width", interval.half_width}};
}

void print_comparison(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const metrics::SystemStatistics baseline =
      collect_system(scorer, options.resampling.baseline, options, streams);
  const metrics::SystemStatistics system =
      collect_system(scorer, options.hypotheses, options, streams);
  const std::int64_t samples = options.resampling.samples();
  const metrics::ResamplingOptions resampling = {
      .samples = samples, .seed = options.resampling.seed, .threads = options.threads};
  const metrics::PairedResult result =
      options.resampling.paired_bootstrap
          ? metrics::paired_bootstrap(*scorer.metric, baseline, system, resampling)
          : metrics::paired_randomisation(*scorer.metric, baseline, system, resampling);
  metrics::SignatureContext context{.references = system.references,
                                    .seed = options.resampling.seed};
  (options.resampling.paired_bootstrap ? context.bootstrap : context.randomisation) = samples;
  const std::string signature = signature_text(scorer.metric->signature(context), options);
  if (options.json) {
    ordered_json json = {
        {"name", scorer.metric->name()},
        {"score", result.score},
        {"baseline_score", result.baseline_score},
        {"test", options.resampling.paired_bootstrap ? "bootstrap" : "randomisation"},
        {"identical", result.identical},
        {"p_value", result.p_value ? ordered_json(*result.p_value) : ordered_json()},
        {"signature", signature},
        {"segments", system.segments()}};
    if (result.interval) json["confidence"] = interval_json(*result.interval);
    if (result.baseline_interval) {
      json["baseline_confidence"] = interval_json(*result.baseline_interval);
    }
    streams.out << json.dump(1) << "\n";
    return;
  }
  const std::string verdict =
      result.p_value ? fmt::format("p = {:.4f}", *result.p_value) : "the systems do not differ";
  streams.out << fmt::format("{}|{} = {:.{}f}, baseline {:.{}f} ({})\n", scorer.metric->name(),
                             signature, result.score, options.width, result.baseline_score,
                             options.width, verdict);
}

}  // namespace

void score_text(const metrics::MetricRow&, const ScoreOptions& options, Streams streams) {
  const Scorer scorer = make_scorer(options);
  if (options.sentence_level) {
    print_sentences(scorer, options, streams);
  } else if (options.resampling.confidence) {
    print_interval(scorer, options, streams);
  } else if (!options.resampling.baseline.empty()) {
    print_comparison(scorer, options, streams);
  } else {
    print_corpus(scorer, options, streams);
  }
}

}  // namespace petlab::cli
