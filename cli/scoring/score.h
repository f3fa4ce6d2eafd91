#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/metric_table.h"
#include "metrics/text_tokenizers.h"

namespace petlab::cli {

/// Options for confidence intervals and paired tests.
struct ResamplingOptions {
  bool confidence = false;
  std::int64_t confidence_n = 1000;
  std::string baseline;  // file with the baseline's hypotheses
  bool paired_bootstrap = false;
  std::int64_t paired_bootstrap_n = 1000;
  bool paired_randomisation = false;
  std::int64_t paired_randomisation_n = 10000;
  std::uint64_t seed = 12345;

  bool paired() const { return paired_bootstrap || paired_randomisation; }
  /// Number of samples of the chosen paired test.
  std::int64_t samples() const {
    return paired_bootstrap ? paired_bootstrap_n : paired_randomisation_n;
  }
};

/// The command line of `petlab score`. Options that do not apply to the metric were rejected.
struct ScoreOptions {
  std::string metric;
  std::string hypotheses;               // file, or "-"
  std::vector<std::string> references;  // files; at most one may be "-"
  std::int64_t tabs = 1;                // tab-separated references per line
  bool json = false;
  bool short_signature = false;
  int width = 4;
  int threads = 1;
  // Options for texts.
  bool sentence_level = false;
  bool empty_is_missing = false;
  bool json_lines = false;  // one JSON string per line
  ResamplingOptions resampling;
  std::optional<std::string> tokenize;  // overrides bleu.tokenize
  metrics::BleuOptions bleu;
  metrics::ChrfOptions chrf;
  metrics::TercomOptions ter;
  bool stem = false;  // for ROUGE
  // Options for labels.
  std::optional<std::int64_t> num_labels;
};

/// The command line in sacrebleu's form: references, then hypotheses of one or more systems,
/// metrics, and the output format.
struct SacrebleuForm {
  std::vector<std::string> systems;  // files; empty: standard input
  std::vector<std::string> metrics;  // names, in the order of the command line
  std::string format = "json";       // text, json, latex
  bool score_only = false;
};

/// Converts the words of `petlab score` for its parser: sacrebleu's multi-letter short options
/// (-tok, -lc, …) become long options.
std::vector<std::string> score_words(std::vector<std::string> words);

/// `petlab score`: computes a metric of line files.
std::function<int()> make_score(CLI::App& app, Streams streams);

/// Read, compute and print a score of texts (cli/scoring/score_text.cpp) and of labels or numbers
/// (cli/scoring/score_labels.cpp). Throw metrics::InputError for problems with a file.
void score_text(const metrics::MetricRow& metric, const ScoreOptions& options, Streams streams);
void score_labels(const metrics::MetricRow& metric, const ScoreOptions& options, Streams streams);

/// Prints the same bytes as sacrebleu's command (docs/reference/score.md lists exceptions).
void score_like_sacrebleu(const SacrebleuForm& form, const ScoreOptions& options, Streams streams);

}  // namespace petlab::cli
