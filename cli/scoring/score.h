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

/// How sure a score is, and whether two systems differ.
struct ResamplingOptions {
  bool confidence = false;
  std::int64_t confidence_n = 1000;
  std::string baseline;  // a file of hypotheses
  bool paired_bootstrap = false;
  std::int64_t paired_bootstrap_n = 1000;
  bool paired_randomisation = false;
  std::int64_t paired_randomisation_n = 10000;
  std::uint64_t seed = 12345;

  bool paired() const { return paired_bootstrap || paired_randomisation; }
  /// Of the paired test that was asked for.
  std::int64_t samples() const {
    return paired_bootstrap ? paired_bootstrap_n : paired_randomisation_n;
  }
};

/// The command line of `petlab score`. Options that mean nothing for the metric were refused.
struct ScoreOptions {
  std::string metric;
  std::string hypotheses;               // a file, or "-"
  std::vector<std::string> references;  // files, one of them may be "-"
  std::int64_t tabs = 1;                // a line of references holds so many, parted by tabs
  bool json = false;
  bool short_signature = false;
  int width = 4;
  int threads = 1;
  // Of texts
  bool sentence_level = false;
  bool empty_is_missing = false;
  bool json_lines = false;  // a JSON string a line
  ResamplingOptions resampling;
  std::optional<std::string> tokenize;  // in place of bleu.tokenize
  metrics::BleuOptions bleu;
  metrics::ChrfOptions chrf;
  metrics::TercomOptions ter;
  bool stem = false;  // of ROUGE
  // Of labels
  std::optional<std::int64_t> num_labels;
};

/// The command line as sacrebleu's users type it: references, then hypotheses of one system or
/// several, metrics, and how to print.
struct SacrebleuForm {
  std::vector<std::string> systems;  // files; empty: standard input
  std::vector<std::string> metrics;  // names, in the order of the command line
  std::string format = "json";       // text, json, latex
  bool score_only = false;
};

/// Words of `petlab score` as its parser knows them: sacrebleu's short options of several letters
/// (-tok, -lc, …) in their long form.
std::vector<std::string> score_words(std::vector<std::string> words);

/// `petlab score`: a metric of two line files.
std::function<int()> make_score(CLI::App& app, Streams streams);

/// The score of texts (cli/scoring/score_text.cpp) and of labels or numbers
/// (cli/scoring/score_labels.cpp): read, compute, print. They throw metrics::InputError for what is
/// wrong with a file.
void score_text(const metrics::MetricRow& metric, const ScoreOptions& options, Streams streams);
void score_labels(const metrics::MetricRow& metric, const ScoreOptions& options, Streams streams);

/// Prints what sacrebleu's command prints, to the byte (docs/reference/score.md lists the
/// exceptions).
void score_like_sacrebleu(const SacrebleuForm& form, const ScoreOptions& options, Streams streams);

}  // namespace petlab::cli
