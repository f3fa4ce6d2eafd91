#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "cli/score.h"
#include "cli/score_files.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/exact_sum.h"
#include "metrics/rouge.h"
#include "metrics/significance.h"
#include "metrics/ter.h"
#include "metrics/text_metric.h"
#include "metrics/token_match.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

metrics::BleuOptions bleu_options(const ScoreOptions& options) {
  metrics::BleuOptions bleu;
  bleu.tokenize = options.tokenize.value_or(options.spm_model ? "spm" : bleu.tokenize);
  bleu.spm_model = options.spm_model;
  bleu.lowercase = options.lowercase;
  bleu.smooth_method = options.smooth_method;
  bleu.smooth_value = options.smooth_value;
  bleu.max_ngram_order = options.max_ngram_order;
  bleu.effective_order = options.effective_order || options.sentence_level;
  return bleu;
}

metrics::ChrfOptions chrf_options(const ScoreOptions& options) {
  metrics::ChrfOptions chrf;
  chrf.char_order = options.char_order;
  chrf.word_order = options.word_order;
  chrf.beta = options.beta;
  chrf.lowercase = options.lowercase;
  chrf.whitespace = options.whitespace;
  chrf.eps_smoothing = options.eps_smoothing;
  return chrf;
}

metrics::TercomOptions ter_options(const ScoreOptions& options) {
  metrics::TercomOptions ter;
  ter.normalized = options.normalized;
  ter.no_punct = options.no_punct;
  ter.asian_support = options.asian_support;
  ter.case_sensitive = options.case_sensitive;
  return ter;
}

// What a metric shows of summed statistics beside its score.
struct Parts {
  std::string verbose;                         // as sacrebleu's verbose score; empty: none
  ordered_json json = ordered_json::object();  // by sacrebleu's names
};

// A text metric with its parts.
struct Scorer {
  std::unique_ptr<metrics::TextMetric> metric;
  std::function<Parts(std::span<const double>)> parts;
};

// Counts are whole but for add-k with a fraction.
ordered_json count_json(double count) {
  if (count == std::floor(count) && std::fabs(count) < 9e15) {
    return static_cast<std::int64_t>(count);
  }
  return count;
}

ordered_json counts_json(const std::vector<double>& counts) {
  ordered_json list = ordered_json::array();
  for (const double count : counts) list.push_back(count_json(count));
  return list;
}

Scorer make_bleu(const ScoreOptions& options) {
  auto bleu = std::make_unique<metrics::Bleu>(bleu_options(options));
  const metrics::Bleu* const metric = bleu.get();
  return {std::move(bleu), [metric](std::span<const double> statistics) {
            const metrics::BleuScore score = metric->result(statistics);
            Parts parts;
            parts.verbose = score.verbose();
            parts.json = {{"counts", counts_json(score.counts)},
                          {"totals", counts_json(score.totals)},
                          {"precisions", score.precisions},
                          {"bp", score.bp},
                          {"sys_len", score.sys_len},
                          {"ref_len", score.ref_len}};
            return parts;
          }};
}

Scorer make_ter(const ScoreOptions& options) {
  auto ter = std::make_unique<metrics::Ter>(ter_options(options));
  const metrics::Ter* const metric = ter.get();
  return {std::move(ter), [metric](std::span<const double> statistics) {
            const metrics::TerScore score = metric->result(statistics);
            Parts parts;
            parts.json = {{"num_edits", score.num_edits}, {"ref_length", score.ref_length}};
            return parts;
          }};
}

Scorer make_rouge(const ScoreOptions& options) {
  auto rouge = std::make_unique<metrics::Rouge>(
      metrics::RougeOptions{*metrics::rouge_type_from(options.metric), options.stem});
  const metrics::Rouge* const metric = rouge.get();
  const int width = options.width;
  return {std::move(rouge), [metric, width](std::span<const double> statistics) {
            const metrics::RougeScore score = metric->result(statistics);
            Parts parts;
            parts.verbose = fmt::format("(precision = {:.{}f} recall = {:.{}f})", score.precision,
                                        width, score.recall, width);
            parts.json = {
                {"precision", score.precision}, {"recall", score.recall}, {"fmeasure", score.f}};
            return parts;
          }};
}

Scorer make_scorer(const ScoreOptions& options) {
  if (options.metric == "bleu") return make_bleu(options);
  if (options.metric == "ter") return make_ter(options);
  if (options.metric == "chrf") {
    return {std::make_unique<metrics::Chrf>(chrf_options(options)),
            [](std::span<const double>) { return Parts{}; }};
  }
  if (options.metric == "exact-match") {
    return {std::make_unique<metrics::ExactMatch>(), [](std::span<const double> statistics) {
              Parts parts;
              parts.json = {{"right", count_json(statistics[0])}};
              return parts;
            }};
  }
  if (options.metric == "token-error-rate") {
    return {std::make_unique<metrics::TokenErrorRate>(), [](std::span<const double> statistics) {
              Parts parts;
              parts.json = {{"num_edits", count_json(statistics[0])},
                            {"ref_length", count_json(statistics[1])}};
              return parts;
            }};
  }
  return make_rouge(options);
}

std::string signature_text(const metrics::Signature& signature, const ScoreOptions& options) {
  return options.short_signature ? signature.format_short() : signature.format();
}

// name, score and signature, and sacrebleu's fields of the signature.
ordered_json score_json(const Scorer& scorer, double score, const Parts& parts,
                        const metrics::Signature& signature, const ScoreOptions& options) {
  ordered_json json = {{"name", scorer.metric->name()},
                       {"score", score},
                       {"signature", signature_text(signature, options)}};
  if (!parts.verbose.empty()) json["verbose_score"] = parts.verbose;
  for (const metrics::Signature::Field& field : signature.fields()) json[field.name] = field.value;
  json.update(parts.json);
  return json;
}

std::string score_line(const Scorer& scorer, const std::string& score, const Parts& parts,
                       const metrics::Signature& signature, const ScoreOptions& options) {
  return fmt::format("{}|{} = {}{}{}\n", scorer.metric->name(), signature_text(signature, options),
                     score, parts.verbose.empty() ? "" : " ", parts.verbose);
}

void print_corpus(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, options.hypotheses, streams);
  const metrics::CorpusStatistics statistics =
      metrics::evaluate(*corpus, *scorer.metric, options.threads);
  const double score = scorer.metric->score(statistics.sums);
  const Parts parts = scorer.parts(statistics.sums);
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

// A line each, in the order of the files and in constant memory.
void print_sentences(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, options.hypotheses, streams);
  metrics::evaluate(
      *corpus, *scorer.metric, options.threads,
      [&](std::int64_t index, const metrics::Segment& segment, std::span<const double> statistics) {
        const double score = scorer.metric->score(statistics);
        const Parts parts = scorer.parts(statistics);
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

metrics::SystemStatistics collect(const Scorer& scorer, const std::string& hypotheses,
                                  const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, hypotheses, streams);
  return metrics::collect_statistics(*corpus, *scorer.metric, options.threads);
}

// As evaluate() sums, so that the score is the same to the last digit.
std::vector<double> sums(const metrics::SystemStatistics& system) {
  std::vector<metrics::ExactSum> columns(system.columns);
  for (std::size_t i = 0; i < system.values.size(); ++i) {
    columns[i % system.columns].add(system.values[i]);
  }
  std::vector<double> result;
  for (const metrics::ExactSum& column : columns) result.push_back(column.round());
  return result;
}

void print_interval(const Scorer& scorer, const ScoreOptions& options, Streams streams) {
  const metrics::SystemStatistics system = collect(scorer, options.hypotheses, options, streams);
  const metrics::BootstrapInterval interval = metrics::bootstrap_interval(
      *scorer.metric, system,
      {.samples = options.confidence_n, .seed = options.seed, .threads = options.threads});
  const std::vector<double> statistics = sums(system);
  const double score = scorer.metric->score(statistics);
  const Parts parts = scorer.parts(statistics);
  const metrics::Signature signature = scorer.metric->signature(
      {.references = system.references, .bootstrap = options.confidence_n, .seed = options.seed});
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
  const metrics::SystemStatistics baseline = collect(scorer, options.baseline, options, streams);
  const metrics::SystemStatistics system = collect(scorer, options.hypotheses, options, streams);
  const std::int64_t samples =
      options.paired_bootstrap ? options.paired_bootstrap_n : options.paired_randomisation_n;
  const metrics::ResamplingOptions resampling = {
      .samples = samples, .seed = options.seed, .threads = options.threads};
  const metrics::PairedResult result =
      options.paired_bootstrap
          ? metrics::paired_bootstrap(*scorer.metric, baseline, system, resampling)
          : metrics::paired_randomisation(*scorer.metric, baseline, system, resampling);
  metrics::SignatureContext context{.references = system.references, .seed = options.seed};
  (options.paired_bootstrap ? context.bootstrap : context.randomisation) = samples;
  const std::string signature = signature_text(scorer.metric->signature(context), options);
  if (options.json) {
    ordered_json json = {
        {"name", scorer.metric->name()},
        {"score", result.score},
        {"baseline_score", result.baseline_score},
        {"test", options.paired_bootstrap ? "bootstrap" : "randomisation"},
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
  if (options.confidence && options.confidence_n < 1) {
    throw std::invalid_argument(
        fmt::format("--confidence-n is {}, must be > 0", options.confidence_n));
  }
  if (options.sentence_level) {
    print_sentences(scorer, options, streams);
  } else if (options.confidence) {
    print_interval(scorer, options, streams);
  } else if (!options.baseline.empty()) {
    print_comparison(scorer, options, streams);
  } else {
    print_corpus(scorer, options, streams);
  }
}

}  // namespace petlab::cli
