#include "cli/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string_view>

#include "cli/score_files.h"
#include "metrics/bleu.h"
#include "metrics/text_tokenizers.h"

namespace petlab::cli {
namespace {

// Which metrics an option belongs to, one word a metric, or one of the groups text and labels.
struct Applicability {
  const char* option;
  std::vector<std::string_view> metrics;
};

const std::vector<Applicability>& applicability() {
  static const std::vector<Applicability> table = {
      {"--sentence-level", {"text"}},
      {"--empty-is-missing", {"text"}},
      {"--short", {"text"}},
      {"--confidence", {"text"}},
      {"--confidence-n", {"text"}},
      {"--baseline", {"text"}},
      {"--paired-bs", {"text"}},
      {"--paired-bs-n", {"text"}},
      {"--paired-ar", {"text"}},
      {"--paired-ar-n", {"text"}},
      {"--seed", {"text"}},
      {"--tokenize", {"bleu"}},
      {"--spm-model", {"bleu"}},
      {"--lowercase", {"bleu", "chrf"}},
      {"--smooth-method", {"bleu"}},
      {"--smooth-value", {"bleu"}},
      {"--max-ngram-order", {"bleu"}},
      {"--effective-order", {"bleu"}},
      {"--char-order", {"chrf"}},
      {"--word-order", {"chrf"}},
      {"--beta", {"chrf"}},
      {"--whitespace", {"chrf"}},
      {"--eps-smoothing", {"chrf"}},
      {"--normalized", {"ter"}},
      {"--no-punct", {"ter"}},
      {"--asian-support", {"ter"}},
      {"--case-sensitive", {"ter"}},
      {"--stem", {"rouge1", "rouge2", "rougeL", "rougeLsum"}},
      {"--json-lines", {"text"}},
      {"--num-labels", {"labels"}},
  };
  return table;
}

std::string_view group(metrics::MetricInput input) {
  switch (input) {
    case metrics::MetricInput::labels:
      return "labels";
    case metrics::MetricInput::scores:
      return "scores";
    case metrics::MetricInput::text:
      return "text";
  }
  return "";
}

bool applies(const Applicability& row, const metrics::MetricRow& metric) {
  return std::any_of(row.metrics.begin(), row.metrics.end(), [&](std::string_view word) {
    return word == metric.name || word == group(metric.input);
  });
}

void require_applicable(const CLI::App& app, const metrics::MetricRow& metric) {
  for (const Applicability& row : applicability()) {
    if (app.get_option(row.option)->count() == 0 || applies(row, metric)) continue;
    throw std::invalid_argument(fmt::format("{} means nothing for {}: it belongs to {}", row.option,
                                            metric.name, fmt::join(row.metrics, ", ")));
  }
}

// Options that want another one, or exclude it.
void require_consistent(const CLI::App& app, const ScoreOptions& options) {
  const auto given = [&app](const char* option) { return app.get_option(option)->count() > 0; };
  const auto wants = [&](const char* option, const char* other) {
    if (given(option) && !given(other)) {
      throw std::invalid_argument(fmt::format("{} wants {}", option, other));
    }
  };
  const auto excludes = [&](const char* option, const char* other) {
    if (given(option) && given(other)) {
      throw std::invalid_argument(
          fmt::format("{} and {} are both there: one is wanted", option, other));
    }
  };
  wants("--confidence-n", "--confidence");
  wants("--paired-bs-n", "--paired-bs");
  wants("--paired-ar-n", "--paired-ar");
  wants("--paired-bs", "--baseline");
  wants("--paired-ar", "--baseline");
  excludes("--paired-bs", "--paired-ar");
  excludes("--sentence-level", "--confidence");
  excludes("--sentence-level", "--baseline");
  excludes("--confidence", "--baseline");
  if (given("--baseline") && !given("--paired-bs") && !given("--paired-ar")) {
    throw std::invalid_argument("--baseline wants --paired-bs or --paired-ar");
  }
  if (given("--seed") && !given("--confidence") && !given("--baseline")) {
    throw std::invalid_argument("--seed wants --confidence or --baseline");
  }
  std::vector<std::string> files = options.references;
  files.push_back(options.hypotheses);
  files.push_back(options.baseline);
  const auto standard_input = std::count(files.begin(), files.end(), "-");
  if (standard_input > 1) {
    throw std::invalid_argument(
        fmt::format("- is there {} times: standard input can be read once", standard_input));
  }
  if (given("--baseline") &&
      std::count(options.references.begin(), options.references.end(), "-")) {
    throw std::invalid_argument(
        "--ref is -: with --baseline references are read twice, a file is wanted");
  }
}

std::vector<std::string> shown_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(shown_name(file));
  return names;
}

void list(bool json, std::ostream& out) {
  if (json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const metrics::MetricRow& row : metrics::metric_table()) {
      rows.push_back({{"name", row.name},
                      {"help", row.help},
                      {"input", group(row.input)},
                      {"higher_is_better", row.higher_is_better}});
    }
    out << rows.dump(1) << "\n";
    return;
  }
  for (const metrics::MetricRow& row : metrics::metric_table()) {
    out << fmt::format("{:<18}{}\n", row.name, row.help);
  }
  out << "\nTokenizers of bleu (--tokenize)\n";
  for (const metrics::TokenizerName& row : metrics::text_tokenizer_names()) {
    out << fmt::format("{:<12}{}\n", row.name, row.help);
  }
  out << fmt::format("\nSmoothing of bleu (--smooth-method): {}\n",
                     fmt::join(metrics::smoothing_names(), ", "));
}

int run_score(const CLI::App& app, const ScoreOptions& options, bool only_list, Streams streams) {
  if (only_list) {
    list(options.json, streams.out);
    return kDone;
  }
  if (options.metric.empty()) {
    throw std::invalid_argument("score wants a metric (petlab score --list shows them)");
  }
  const metrics::MetricRow& metric = metrics::metric_named(options.metric);
  if (options.hypotheses.empty()) throw std::invalid_argument("score wants --hyp FILE");
  if (options.references.empty()) throw std::invalid_argument("score wants --ref FILE");
  require_applicable(app, metric);
  require_consistent(app, options);
  if (options.threads < 1) {
    throw std::invalid_argument(fmt::format("--threads is {}, must be > 0", options.threads));
  }
  if (options.width < 0 || options.width > 17) {
    throw std::invalid_argument(fmt::format("--width is {}, must be 0 to 17", options.width));
  }
  try {
    if (metric.input == metrics::MetricInput::text) {
      score_text(metric, options, streams);
    } else {
      score_labels(metric, options, streams);
    }
  } catch (const std::bad_alloc&) {
    // Where one line is too long, the message of its reader or scorer came first.
    throw std::runtime_error(
        fmt::format("{} and {}: there is not enough memory for what {} keeps of all their lines; "
                    "score parts of them, or allow the process more memory",
                    shown_name(options.hypotheses),
                    fmt::join(shown_names(options.references), ", "), options.metric));
  }
  return kDone;
}

void add_text_options(CLI::App& app, ScoreOptions& options) {
  app.add_flag("--sentence-level", options.sentence_level, "a score for each line");
  app.add_flag("--empty-is-missing", options.empty_is_missing,
               "an empty line of references is a missing reference, not an empty one");
  app.add_flag("--short", options.short_signature, "print the short signature");
  app.add_flag("--confidence", options.confidence, "95 % interval by bootstrap resampling");
  app.add_option("--confidence-n", options.confidence_n, "resamples (default 1000)");
  app.add_option("--baseline", options.baseline, "hypotheses of the system to compare with");
  app.add_flag("--paired-bs", options.paired_bootstrap, "paired bootstrap test");
  app.add_option("--paired-bs-n", options.paired_bootstrap_n, "resamples (default 1000)");
  app.add_flag("--paired-ar", options.paired_randomisation, "approximate randomisation test");
  app.add_option("--paired-ar-n", options.paired_randomisation_n, "trials (default 10000)");
  app.add_option("--seed", options.seed, "of resampling (default 12345)");
}

void add_metric_options(CLI::App& app, ScoreOptions& options) {
  app.add_option("--tokenize", options.tokenize, "bleu: tokenizer (default 13a)");
  app.add_option("--spm-model", options.spm_model, "bleu: SentencePiece model; tokenizes with it");
  app.add_flag("--lowercase,--chrf-lowercase", options.lowercase, "bleu, chrf: ignore case");
  app.add_option("--smooth-method", options.smooth_method, "bleu: exp, floor, add-k or none");
  app.add_option("--smooth-value", options.smooth_value, "bleu: of floor (0.1) and add-k (1)");
  app.add_option("--max-ngram-order", options.max_ngram_order, "bleu: longest n-grams (4)");
  app.add_flag("--effective-order", options.effective_order,
               "bleu: leave out orders without n-grams; always so with --sentence-level");
  app.add_option("--char-order,--chrf-char-order", options.char_order, "chrf (6)");
  app.add_option("--word-order,--chrf-word-order", options.word_order, "chrf (0); 2 is chrF++");
  app.add_option("--beta,--chrf-beta", options.beta, "chrf: weight of recall (2)");
  app.add_flag("--whitespace,--chrf-whitespace", options.whitespace, "chrf: count white space");
  app.add_flag("--eps-smoothing,--chrf-eps-smoothing", options.eps_smoothing,
               "chrf: average over all orders");
  app.add_flag("--normalized,--ter-normalized", options.normalized, "ter: split punctuation");
  app.add_flag("--no-punct,--ter-no-punct", options.no_punct, "ter: drop punctuation");
  app.add_flag("--asian-support,--ter-asian-support", options.asian_support,
               "ter: treat CJK characters one by one");
  app.add_flag("--case-sensitive,--ter-case-sensitive", options.case_sensitive,
               "ter: do not ignore case");
  app.add_flag("--stem", options.stem, "rouge: Porter's stemmer");
  app.add_flag("--json-lines", options.json_lines,
               "texts: every line of the files is a JSON string, which can hold line breaks");
  app.add_option("--num-labels", options.num_labels,
                 "number of classes (default: as many as the files need, at least 2)");
}

}  // namespace

std::function<int()> make_score(CLI::App& app, Streams streams) {
  const auto options = std::make_shared<ScoreOptions>();
  const auto only_list = std::make_shared<bool>(false);
  app.add_option("metric", options->metric, "bleu, rouge2, matthews, …: see --list");
  app.add_option("--hyp", options->hypotheses, "file of hypotheses or predictions, - for stdin");
  app.add_option("--ref", options->references, "file of references or gold labels; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--json", options->json, "print JSON, scores with all their digits");
  app.add_option("--threads", options->threads, "compute with at most this many threads (1)");
  app.add_option("--width", options->width, "decimals of printed scores (4)");
  app.add_flag("--list", *only_list, "show all metrics");
  add_text_options(app, *options);
  add_metric_options(app, *options);
  return
      [&app, options, only_list, streams] { return run_score(app, *options, *only_list, streams); };
}

}  // namespace petlab::cli
