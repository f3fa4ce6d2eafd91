#include "cli/scoring/text_scorer.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/scoring/score_files.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/exact_sum.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "metrics/token_match.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

metrics::BleuOptions bleu_options(const ScoreOptions& options) {
  metrics::BleuOptions bleu = options.bleu;
  bleu.tokenize = options.tokenize.value_or(bleu.spm_model ? "spm" : bleu.tokenize);
  bleu.effective_order = bleu.effective_order || options.sentence_level;
  return bleu;
}

// Counts are integers, except for add-k with a fractional k.
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
            ScoreParts parts;
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
  auto ter = std::make_unique<metrics::Ter>(options.ter);
  const metrics::Ter* const metric = ter.get();
  return {std::move(ter), [metric](std::span<const double> statistics) {
            const metrics::TerScore score = metric->result(statistics);
            ScoreParts parts;
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
            ScoreParts parts;
            parts.verbose = fmt::format("(precision = {:.{}f} recall = {:.{}f})", score.precision,
                                        width, score.recall, width);
            parts.json = {
                {"precision", score.precision}, {"recall", score.recall}, {"fmeasure", score.f}};
            return parts;
          }};
}

}  // namespace

Scorer make_scorer(const ScoreOptions& options) {
  if (options.metric == "bleu") return make_bleu(options);
  if (options.metric == "ter") return make_ter(options);
  if (options.metric == "chrf") {
    return {std::make_unique<metrics::Chrf>(options.chrf),
            [](std::span<const double>) { return ScoreParts{}; }};
  }
  if (options.metric == "exact-match") {
    return {std::make_unique<metrics::ExactMatch>(), [](std::span<const double> statistics) {
              ScoreParts parts;
              parts.json = {{"right", count_json(statistics[0])}};
              return parts;
            }};
  }
  if (options.metric == "token-error-rate") {
    return {std::make_unique<metrics::TokenErrorRate>(), [](std::span<const double> statistics) {
              ScoreParts parts;
              parts.json = {{"num_edits", count_json(statistics[0])},
                            {"ref_length", count_json(statistics[1])}};
              return parts;
            }};
  }
  return make_rouge(options);
}

metrics::SystemStatistics collect_system(const Scorer& scorer, const std::string& hypotheses,
                                         const ScoreOptions& options, Streams streams) {
  const auto corpus = open_corpus(options, hypotheses, streams);
  return metrics::collect_statistics(*corpus, *scorer.metric, options.threads);
}

std::vector<double> sums_of(const metrics::SystemStatistics& system) {
  std::vector<metrics::ExactSum> columns(system.columns);
  for (std::size_t i = 0; i < system.values.size(); ++i) {
    columns[i % system.columns].add(system.values[i]);
  }
  std::vector<double> result;
  for (const metrics::ExactSum& column : columns) result.push_back(column.round());
  return result;
}

std::string signature_text(const metrics::Signature& signature, const ScoreOptions& options) {
  return options.short_signature ? signature.format_short() : signature.format();
}

}  // namespace petlab::cli
