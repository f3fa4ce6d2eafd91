#include "cli/scoring/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

#include "cli/options/help_format.h"
#include "cli/scoring/score_files.h"
#include "metrics/bleu.h"
#include "metrics/text_tokenizers.h"

namespace petlab::cli {
namespace {

// The metrics to which an option applies: names of metrics, or one of the groups text and labels.
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
      {"--chrf-lowercase", {"chrf"}},
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
      {"--num-refs", {"text"}},
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

// Every given option must apply to at least one of the metrics.
void require_applicable(const CLI::App& app, const std::vector<std::string>& names) {
  for (const Applicability& row : applicability()) {
    if (app.get_option(row.option)->count() == 0) continue;
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return applies(row, metrics::metric_named(name));
        })) {
      continue;
    }
    throw std::invalid_argument(fmt::format("{} does not apply to {}: it belongs to {}", row.option,
                                            fmt::join(names, " and "),
                                            fmt::join(row.metrics, ", ")));
  }
}

// Checks options that require or exclude each other. With `several`, the baseline is one of the
// systems.
void require_consistent(const CLI::App& app, const ScoreOptions& options, bool several = false) {
  const auto given = [&app](const char* option) { return app.get_option(option)->count() > 0; };
  const auto wants = [&](const char* option, const char* other) {
    if (given(option) && !given(other)) {
      throw std::invalid_argument(fmt::format("{} requires {}", option, other));
    }
  };
  const auto excludes = [&](const char* option, const char* other) {
    if (given(option) && given(other)) {
      throw std::invalid_argument(
          fmt::format("found both {} and {}, expected one of them", option, other));
    }
  };
  wants("--confidence-n", "--confidence");
  wants("--paired-bs-n", "--paired-bs");
  wants("--paired-ar-n", "--paired-ar");
  if (!several) {
    wants("--paired-bs", "--baseline");
    wants("--paired-ar", "--baseline");
  }
  excludes("--paired-bs", "--paired-ar");
  excludes("--sentence-level", "--confidence");
  excludes("--sentence-level", "--baseline");
  excludes("--confidence", "--baseline");
  if (given("--baseline") && !given("--paired-bs") && !given("--paired-ar")) {
    throw std::invalid_argument("--baseline requires --paired-bs or --paired-ar");
  }
  const bool compares = given("--baseline") || given("--paired-bs") || given("--paired-ar");
  if (given("--seed") && !given("--confidence") && !compares) {
    throw std::invalid_argument("--seed requires --confidence or --baseline");
  }
  std::vector<std::string> files = options.references;
  files.push_back(options.hypotheses);
  files.push_back(options.resampling.baseline);
  const auto standard_input = std::count(files.begin(), files.end(), "-");
  if (standard_input > 1) {
    throw std::invalid_argument(fmt::format(
        "- is given {} times, but standard input can be read only once", standard_input));
  }
  if (given("--baseline") &&
      std::count(options.references.begin(), options.references.end(), "-")) {
    throw std::invalid_argument(
        "--ref is -, must be a file: --baseline reads the references twice");
  }
}

std::vector<std::string> shown_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(shown_name(file));
  return names;
}

void list(const CLI::App& app, bool json, std::ostream& out) {
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
  out << "\nOptions of one metric\n" << brief_options_text(app, kMetricOptions);
}

/// The parsed command line.
struct ScoreCommand {
  ScoreOptions options;
  SacrebleuForm form;
  std::vector<std::string> words;  // a metric, or files of references
  std::optional<int> width;
  bool only_list = false;

  // True for sacrebleu's form, which has its own options or references as positional arguments.
  bool is_sacrebleus(const CLI::App& app) const {
    for (const char* option : {"--input", "--metrics", "--score-only"}) {
      if (app.get_option(option)->count() > 0) return true;
    }
    if (words.empty() || !options.hypotheses.empty() || !options.references.empty()) return false;
    const auto table = metrics::metric_table();
    return words.size() > 1 || std::none_of(table.begin(), table.end(), [&](const auto& row) {
             return row.name == words.front();
           });
  }
};

void require_numbers(const ScoreOptions& options) {
  const auto require = [](const char* option, std::int64_t value) {
    if (value < 1) throw std::invalid_argument(fmt::format("{} is {}, must be > 0", option, value));
  };
  require("--threads", options.threads);
  require("--num-refs", options.tabs);
  require("--confidence-n", options.resampling.confidence_n);
  if (options.width < 0 || options.width > 17) {
    throw std::invalid_argument(fmt::format("--width is {}, must be 0 to 17", options.width));
  }
}

// Scores one or two systems by petlab's own form of the command.
void run_own_form(const CLI::App& app, ScoreCommand& command, Streams streams) {
  ScoreOptions& options = command.options;
  if (command.words.empty()) {
    throw std::invalid_argument("score needs a metric (petlab score --list shows them)");
  }
  if (command.words.size() > 1) {
    throw std::invalid_argument(fmt::format("score: unexpected argument \"{}\"", command.words[1]));
  }
  options.metric = command.words.front();
  const metrics::MetricRow& metric = metrics::metric_named(options.metric);
  if (app.get_option("--format")->count() > 0) {
    const std::string& format = command.form.format;
    if (format != "text" && format != "json") {
      throw std::invalid_argument(
          fmt::format("--format is '{}', must be text or json; latex needs --input", format));
    }
    options.json = format == "json";
  }
  if (options.hypotheses.empty()) throw std::invalid_argument("score requires --hyp FILE");
  if (options.references.empty()) throw std::invalid_argument("score requires --ref FILE");
  options.chrf.lowercase = options.chrf.lowercase || options.bleu.lowercase;
  require_applicable(app, {options.metric});
  require_consistent(app, options);
  options.width = command.width.value_or(4);
  require_numbers(options);
  if (metric.input == metrics::MetricInput::text) {
    score_text(metric, options, streams);
  } else {
    score_labels(metric, options, streams);
  }
}

void run_sacrebleus_form(const CLI::App& app, ScoreCommand& command, Streams streams) {
  ScoreOptions& options = command.options;
  SacrebleuForm& form = command.form;
  for (const char* option : {"--hyp", "--ref", "--baseline"}) {
    if (app.get_option(option)->count() == 0) continue;
    throw std::invalid_argument(
        fmt::format("{} does not belong to this form; the forms are score REFERENCES… --input "
                    "HYPOTHESES… --metrics METRIC…, and score METRIC --hyp FILE --ref FILE",
                    option));
  }
  if (command.words.empty()) {
    throw std::invalid_argument("score needs reference files before --input");
  }
  options.references = command.words;
  if (options.json) form.format = "json";
  if (form.metrics.empty()) form.metrics = {"bleu"};
  for (const std::string& name : form.metrics) {
    const metrics::MetricRow& metric = metrics::metric_named(name);
    if (metric.input != metrics::MetricInput::text) {
      throw std::invalid_argument(fmt::format(
          "--metrics names {}, a metric of {}: use petlab score {} --hyp FILE --ref FILE", name,
          group(metric.input), name));
    }
    if (std::count(form.metrics.begin(), form.metrics.end(), name) > 1) {
      throw std::invalid_argument(fmt::format("--metrics names {} twice", name));
    }
  }
  require_applicable(app, form.metrics);
  require_consistent(app, options, true);
  std::vector<std::string> files = options.references;
  files.insert(files.end(), form.systems.begin(), form.systems.end());
  if (form.systems.empty()) files.emplace_back("-");
  const auto standard_input = std::count(files.begin(), files.end(), "-");
  const bool again = form.metrics.size() > 1 || form.systems.size() > 1;
  if (standard_input > 1 || (standard_input == 1 && again)) {
    throw std::invalid_argument(
        "standard input can be read only once: several metrics or systems need files");
  }
  options.width = command.width.value_or(1);
  require_numbers(options);
  score_like_sacrebleu(form, options, streams);
}

int run_score(const CLI::App& app, ScoreCommand& command, Streams streams) {
  const ScoreOptions& options = command.options;
  if (command.only_list) {
    list(app, options.json, streams.out);
    return kDone;
  }
  try {
    if (command.is_sacrebleus(app)) {
      run_sacrebleus_form(app, command, streams);
    } else {
      run_own_form(app, command, streams);
    }
  } catch (const std::bad_alloc&) {
    // If a single line was too long, its reader or scorer has already thrown.
    std::vector<std::string> files = command.form.systems;
    if (files.empty()) files = {options.hypotheses.empty() ? "-" : options.hypotheses};
    throw std::runtime_error(fmt::format(
        "{} and {}: not enough memory for the data that {} keeps of all lines; score parts of "
        "them, or allow the process more memory",
        fmt::join(shown_names(files), ", "), fmt::join(shown_names(options.references), ", "),
        options.metric.empty()
            ? std::string(fmt::format("{}", fmt::join(command.form.metrics, ", ")))
            : options.metric));
  }
  return kDone;
}

void add_text_options(CLI::App& app, ScoreOptions& options) {
  advanced(app.add_flag("--sentence-level", options.sentence_level, "a score for each line"));
  advanced(app.add_flag("--empty-is-missing", options.empty_is_missing,
                        "an empty line is a missing reference"));
  advanced(app.add_flag("--short", options.short_signature, "print the short signature"));
  advanced(app.add_flag("--confidence", options.resampling.confidence,
                        "95 % interval by bootstrap resampling"));
  advanced(app.add_option("--confidence-n", options.resampling.confidence_n,
                          "resamples (default 1000)"));
  advanced(app.add_option("--baseline", options.resampling.baseline,
                          "hypotheses of the system to compare with"));
  advanced(
      app.add_flag("--paired-bs", options.resampling.paired_bootstrap, "paired bootstrap test"));
  advanced(app.add_option("--paired-bs-n", options.resampling.paired_bootstrap_n,
                          "resamples (default 1000)"));
  advanced(app.add_flag("--paired-ar", options.resampling.paired_randomisation,
                        "approximate randomisation test"));
  advanced(app.add_option("--paired-ar-n", options.resampling.paired_randomisation_n,
                          "trials (default 10000)"));
  advanced(app.add_option("--seed", options.resampling.seed, "of resampling (default 12345)"));
}

void add_metric_options(CLI::App& app, ScoreOptions& options) {
  of_metric(app.add_option("--tokenize", options.tokenize, "bleu: tokenizer (default 13a)"));
  of_metric(app.add_option("--spm-model", options.bleu.spm_model,
                           "bleu: SentencePiece model; tokenizes with it"));
  of_metric(app.add_flag("--lowercase", options.bleu.lowercase,
                         "bleu, chrf: ignore case (sacrebleu's form: bleu)"));
  of_metric(app.add_flag("--chrf-lowercase", options.chrf.lowercase, "chrf: ignore case"));
  of_metric(app.add_option("-s,--smooth-method", options.bleu.smooth_method,
                           "bleu: exp, floor, add-k or none"));
  of_metric(app.add_option("--smooth-value", options.bleu.smooth_value,
                           "bleu: of floor (0.1) and add-k (1)"));
  of_metric(app.add_option("--max-ngram-order", options.bleu.max_ngram_order,
                           "bleu: longest n-grams (4)"));
  of_metric(app.add_flag("--effective-order", options.bleu.effective_order,
                         "bleu: leave out orders without n-grams"));
  of_metric(app.add_option("--char-order,--chrf-char-order", options.chrf.char_order,
                           "chrf: longest character n-grams (6)"));
  of_metric(app.add_option("--word-order,--chrf-word-order", options.chrf.word_order,
                           "chrf: longest word n-grams (0); 2 is chrF++"));
  of_metric(app.add_option("--beta,--chrf-beta", options.chrf.beta, "chrf: weight of recall (2)"));
  of_metric(app.add_flag("--whitespace,--chrf-whitespace", options.chrf.whitespace,
                         "chrf: count white space"));
  of_metric(app.add_flag("--eps-smoothing,--chrf-eps-smoothing", options.chrf.eps_smoothing,
                         "chrf: average over all orders"));
  of_metric(app.add_flag("--normalized,--ter-normalized", options.ter.normalized,
                         "ter: split punctuation"));
  of_metric(
      app.add_flag("--no-punct,--ter-no-punct", options.ter.no_punct, "ter: drop punctuation"));
  of_metric(app.add_flag("--asian-support,--ter-asian-support", options.ter.asian_support,
                         "ter: treat CJK characters one by one"));
  of_metric(app.add_flag("--case-sensitive,--ter-case-sensitive", options.ter.case_sensitive,
                         "ter: do not ignore case"));
  of_metric(app.add_flag("--stem", options.stem, "rouge: Porter's stemmer"));
  of_metric(app.add_flag("--json-lines", options.json_lines,
                         "texts: each line of the files is a JSON string"));
  of_metric(app.add_option("--num-labels", options.num_labels,
                           "labels: number of classes (default: from the files)"));
}

}  // namespace

std::function<int()> make_score(CLI::App& app, Streams streams) {
  const auto command = std::make_shared<ScoreCommand>();
  ScoreOptions& options = command->options;
  app.add_option("words", command->words, "a metric (see --list), or sacrebleu's references");
  app.add_option("--hyp", options.hypotheses, "file of hypotheses or predictions, - for stdin");
  app.add_option("--ref", options.references, "file of references or gold labels (repeatable)")
      ->allow_extra_args(false);
  app.add_option("-i,--input", command->form.systems,
                 "as in sacrebleu: hypotheses, one file per system");
  app.add_option("-m,--metrics", command->form.metrics, "as in sacrebleu: metrics of texts (bleu)");
  CLI::Option* const format = app.add_option("-f,--format", command->form.format,
                                             "text, json or latex (json in sacrebleu's form)");
  app.add_flag("-b,--score-only", command->form.score_only,
               "as in sacrebleu: print only the score");
  app.add_option("--num-refs", options.tabs, "references per line, separated by tabs");
  app.add_flag("--json", options.json, "short for --format json")->excludes(format);
  app.add_option("--threads", options.threads, "maximum number of threads (1)");
  app.add_option("-w,--width", command->width, "decimals of scores (4; in sacrebleu's form 1)");
  app.add_flag("--list", command->only_list, "show all metrics");
  add_text_options(app, options);
  add_metric_options(app, options);
  return [&app, command, streams] { return run_score(app, *command, streams); };
}

}  // namespace petlab::cli
