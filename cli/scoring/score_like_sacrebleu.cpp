// Reproduces the command line and output of sacrebleu's command.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cli/scoring/score_files.h"
#include "cli/scoring/score_table.h"
#include "cli/scoring/text_scorer.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

struct ShortOption {
  const char* typed;
  const char* known;
};
constexpr std::array kShortOptions{
    ShortOption{"-sl", "--sentence-level"}, ShortOption{"-sv", "--smooth-value"},
    ShortOption{"-tok", "--tokenize"},      ShortOption{"-lc", "--lowercase"},
    ShortOption{"-cc", "--char-order"},     ShortOption{"-cw", "--word-order"},
    ShortOption{"-ci", "--confidence"},     ShortOption{"-cin", "--confidence-n"},
    ShortOption{"-par", "--paired-ar"},     ShortOption{"-parn", "--paired-ar-n"},
    ShortOption{"-pbs", "--paired-bs"},     ShortOption{"-pbsn", "--paired-bs-n"},
    ShortOption{"-sh", "--short"},          ShortOption{"-nr", "--num-refs"},
};

/// A metric with its command line options.
struct NamedScorer {
  ScoreOptions options;
  Scorer scorer;
};

std::vector<NamedScorer> scorers_of(const SacrebleuForm& form, const ScoreOptions& options) {
  std::vector<NamedScorer> all;
  for (const std::string& name : form.metrics) {
    NamedScorer named{options, {}};
    named.options.metric = name;
    named.scorer = make_scorer(named.options);
    all.push_back(std::move(named));
  }
  return all;
}

std::vector<NamedScorer> in_order(std::vector<NamedScorer> all) {
  std::sort(all.begin(), all.end(), [](const NamedScorer& a, const NamedScorer& b) {
    return a.options.metric < b.options.metric;
  });
  return all;
}

std::string number(double value, int width) { return fmt::format("{:.{}f}", value, width); }

/// A value rounded as it is printed, which is what sacrebleu's JSON contains.
double rounded(double value, int width) { return std::stod(number(value, width)); }

/// A printed score, with its parts and its signature.
struct Printed {
  std::string name;
  double score = 0;
  std::string verbose;
  metrics::Signature signature;
  std::optional<metrics::BootstrapInterval> interval;
};

std::string confidence_of(const metrics::BootstrapInterval& interval, int width) {
  return fmt::format("μ = {} ± {}", number(interval.mean, width),
                     number(interval.half_width, width));
}

std::string score_text_of(const Printed& printed, int width) {
  std::string text = number(printed.score, width);
  if (printed.interval) text += " (" + confidence_of(*printed.interval, width) + ")";
  return text;
}

std::string line_of(const Printed& printed, const ScoreOptions& options) {
  return fmt::format("{}|{} = {}{}{}", printed.name, signature_text(printed.signature, options),
                     score_text_of(printed, options.width), printed.verbose.empty() ? "" : " ",
                     printed.verbose);
}

std::string json_of(const Printed& printed, int width) {
  ordered_json json = {{"name", printed.name},
                       {"score", rounded(printed.score, width)},
                       {"signature", printed.signature.format()}};
  if (printed.interval) {
    json["confidence_mean"] = rounded(printed.interval->mean, width);
    json["confidence_var"] = rounded(printed.interval->half_width, width);
    json["confidence"] = confidence_of(*printed.interval, width);
  }
  if (!printed.verbose.empty()) json["verbose_score"] = printed.verbose;
  for (const metrics::Signature::Part& part : printed.signature.parts()) {
    json[part.name] = part.value;
  }
  return json.dump(1);
}

Printed score_of(const NamedScorer& named, const std::string& system, Streams streams) {
  const ScoreOptions& options = named.options;
  const metrics::TextMetric& metric = *named.scorer.metric;
  Printed printed;
  printed.name = metric.name();
  if (!options.resampling.confidence) {
    const auto corpus = open_corpus(options, system, streams);
    const metrics::CorpusStatistics statistics =
        metrics::evaluate(*corpus, metric, options.threads);
    printed.score = metric.score(statistics.sums);
    printed.verbose = named.scorer.parts(statistics.sums).verbose;
    printed.signature = metric.signature({.references = statistics.references});
    return printed;
  }
  const metrics::SystemStatistics statistics =
      collect_system(named.scorer, system, options, streams);
  const std::vector<double> sums = sums_of(statistics);
  printed.score = metric.score(sums);
  printed.verbose = named.scorer.parts(sums).verbose;
  printed.signature = metric.signature({.references = statistics.references,
                                        .bootstrap = options.resampling.confidence_n,
                                        .seed = options.resampling.seed});
  const metrics::BootstrapInterval interval =
      metrics::bootstrap_interval(metric, statistics,
                                  {.samples = options.resampling.confidence_n,
                                   .seed = options.resampling.seed,
                                   .threads = options.threads});
  if (interval.mean > 0) printed.interval = interval;
  return printed;
}

/// Aligns lines at their first equals signs.
std::string aligned(const std::vector<std::string>& lines) {
  std::size_t widest = 0;
  for (const std::string& line : lines) widest = std::max(widest, line.find('='));
  std::string all;
  for (const std::string& line : lines) {
    all += std::string(widest - line.find('='), ' ') + line + "\n";
  }
  return all;
}

void print_one_system(const std::vector<NamedScorer>& scorers, const std::string& system,
                      const SacrebleuForm& form, Streams streams) {
  std::vector<std::string> printed;
  for (const NamedScorer& named : scorers) {
    const Printed score = score_of(named, system, streams);
    const int width = named.options.width;
    printed.push_back(form.score_only         ? score_text_of(score, width)
                      : form.format == "json" ? json_of(score, width)
                                              : line_of(score, named.options));
  }
  if (form.format == "json") {
    streams.out << (printed.size() == 1 ? printed.front() + "\n"
                                        : fmt::format("[\n{}\n]\n", fmt::join(printed, ",\n")));
  } else if (printed.size() == 1 || form.score_only) {
    streams.out << fmt::format("{}\n", fmt::join(printed, "\n"));
  } else {
    streams.out << aligned(printed);
  }
}

void print_sentences_of(const NamedScorer& named, const std::string& system,
                        const SacrebleuForm& form, Streams streams) {
  const metrics::TextMetric& metric = *named.scorer.metric;
  const auto corpus = open_corpus(named.options, system, streams);
  metrics::evaluate(
      *corpus, metric, named.options.threads,
      [&](std::int64_t, const metrics::Segment& segment, std::span<const double> statistics) {
        Printed printed;
        printed.name = metric.name();
        printed.score = metric.score(statistics);
        printed.verbose = named.scorer.parts(statistics).verbose;
        printed.signature =
            metric.signature({.references = static_cast<std::int64_t>(segment.references.size())});
        streams.out << (form.score_only ? score_text_of(printed, named.options.width)
                                        : line_of(printed, named.options))
                    << "\n";
      });
}

/// A system's score, compared with the baseline.
struct Cell {
  double score = 0;
  std::optional<metrics::BootstrapInterval> interval;
  std::optional<double> p_value;
  bool identical = false;

  std::string text(int width, bool several_lines) const {
    std::string text = number(score, width);
    if (interval) {
      text += fmt::format(" ({} ± {})", number(interval->mean, width),
                          number(interval->half_width, width));
    }
    const char between = several_lines ? '\n' : ' ';
    if (identical) return fmt::format("{}{}(no difference)", text, between);
    if (!p_value) return text;
    return fmt::format("{}{}(p = {:.4f}){}", text, between, *p_value, *p_value > 0.05 ? "" : "*");
  }

  ordered_json json() const {
    ordered_json object = {{"score", score}};
    object["p_value"] = p_value ? ordered_json(*p_value) : ordered_json();
    object["mean"] = interval ? ordered_json(interval->mean) : ordered_json();
    object["ci"] = interval ? ordered_json(interval->half_width) : ordered_json();
    if (identical) object["identical"] = true;
    return object;
  }
};

/// The column of a metric, with its signature.
struct Column {
  std::string name;
  std::string signature;
  std::vector<Cell> cells;  // (systems)
};

Column column_of(const NamedScorer& named, const std::vector<std::string>& systems,
                 Streams streams) {
  const ScoreOptions& options = named.options;
  const metrics::TextMetric& metric = *named.scorer.metric;
  Column column{metric.name(), "", {}};
  if (!options.resampling.paired()) {
    for (const std::string& system : systems) {
      const Printed printed = score_of(named, system, streams);
      column.signature = signature_text(printed.signature, options);
      column.cells.push_back({printed.score, {}, {}, false});
    }
    return column;
  }
  const std::int64_t samples = options.resampling.samples();
  const metrics::ResamplingOptions resampling = {
      .samples = samples, .seed = options.resampling.seed, .threads = options.threads};
  const metrics::SystemStatistics baseline =
      collect_system(named.scorer, systems.front(), options, streams);
  metrics::SignatureContext context{.references = baseline.references,
                                    .seed = options.resampling.seed};
  (options.resampling.paired_bootstrap ? context.bootstrap : context.randomisation) = samples;
  column.signature = signature_text(metric.signature(context), options);
  for (std::size_t s = 1; s < systems.size(); ++s) {
    const metrics::SystemStatistics system =
        collect_system(named.scorer, systems[s], options, streams);
    const metrics::PairedResult result =
        options.resampling.paired_bootstrap
            ? metrics::paired_bootstrap(metric, baseline, system, resampling)
            : metrics::paired_randomisation(metric, baseline, system, resampling);
    if (column.cells.empty()) {
      column.cells.push_back({result.baseline_score, result.baseline_interval, {}, false});
    }
    column.cells.push_back({result.score, result.interval, result.p_value, result.identical});
  }
  return column;
}

std::string test_text(const std::string& baseline, const ScoreOptions& options) {
  const std::string title =
      options.resampling.paired_bootstrap
          ? fmt::format("Paired bootstrap resampling test with {} resampling trials",
                        options.resampling.paired_bootstrap_n)
          : fmt::format("Paired approximate randomization test with {} trials",
                        options.resampling.paired_randomisation_n);
  const std::string line(title.size(), '-');
  return fmt::format(
      "{}\n{}\n{}\n - Each system is compared with {}.\n   {}\n - p is the share of {} in which "
      "the scores differ by at least as much as observed,\n   if the systems did not differ; \"*\" "
      "marks values below 0.05.\n\n",
      line, title, line, baseline,
      options.resampling.paired_bootstrap
          ? "Score, mean of the resamples and half of their 95 % interval are given."
          : "Its score is given.",
      options.resampling.paired_bootstrap ? "resamples" : "trials");
}

void print_systems(const std::vector<NamedScorer>& scorers, std::vector<std::string> systems,
                   const SacrebleuForm& form, Streams streams) {
  const ScoreOptions& options = scorers.front().options;
  const bool paired = options.resampling.paired();
  std::vector<Column> columns;
  for (const NamedScorer& named : scorers) columns.push_back(column_of(named, systems, streams));
  if (paired) systems.front() = "Baseline: " + systems.front();
  if (form.format == "json") {
    ordered_json all = ordered_json::array();
    for (std::size_t s = 0; s < systems.size(); ++s) {
      ordered_json row = {{"system", systems[s]}};
      for (const Column& column : columns) {
        row[column.name] = paired ? column.cells[s].json()
                                  : ordered_json(number(column.cells[s].score, options.width));
      }
      all.push_back(std::move(row));
    }
    streams.out << all.dump(4) << "\n";
    return;
  }
  const bool text = form.format == "text";
  ScoreTable table;
  table.header = {"System"};
  for (const Column& column : columns) {
    table.header.push_back(column.name +
                           (options.resampling.paired_bootstrap ? " (μ ± 95% CI)" : ""));
  }
  for (std::size_t s = 0; s < systems.size(); ++s) {
    table.cells.push_back({systems[s]});
    for (const Column& column : columns) {
      table.cells.back().push_back(column.cells[s].text(options.width, text));
    }
  }
  streams.out << (text ? grid_of(table) : booktabs_of(table)) << "\n";
  if (paired) streams.out << test_text(systems.front(), options);
  streams.out << "-----------------\nMetric signatures\n-----------------\n";
  for (const Column& column : columns) {
    streams.out << fmt::format(" - {:<10} {}\n", column.name, column.signature);
  }
}

void require_possible(const SacrebleuForm& form, const ScoreOptions& options) {
  const bool paired = options.resampling.paired();
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (form.format != "text" && form.format != "json" && form.format != "latex") {
    refuse(fmt::format("--format is '{}', must be text, json or latex", form.format));
  }
  const std::size_t systems = std::max<std::size_t>(1, form.systems.size());
  if (form.format == "latex" && systems < 2) {
    refuse("--format latex prints a table of systems: --input needs at least two");
  }
  if (paired && systems < 2) {
    refuse("a paired test compares systems: --input needs at least two, the baseline first");
  }
  if (options.resampling.confidence && systems > 1) {
    refuse("--confidence takes one system; for several, --paired-bs shows intervals");
  }
  if (options.sentence_level && (systems > 1 || form.metrics.size() > 1)) {
    refuse("--sentence-level takes one system and one metric");
  }
  if (form.score_only && systems > 1) {
    refuse("--score-only takes one system; several are printed as a table");
  }
  for (std::size_t i = 0; i < form.systems.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (form.systems[i] == form.systems[k]) {
        refuse(
            fmt::format("--input names {} twice: each system needs its own file", form.systems[i]));
      }
    }
  }
}

}  // namespace

std::vector<std::string> score_words(std::vector<std::string> words) {
  for (std::string& word : words) {
    for (const ShortOption& option : kShortOptions) {
      if (word == option.typed) word = option.known;
    }
  }
  return words;
}

void score_like_sacrebleu(const SacrebleuForm& form, const ScoreOptions& options, Streams streams) {
  require_possible(form, options);
  const std::vector<NamedScorer> scorers = in_order(scorers_of(form, options));
  const std::vector<std::string> systems =
      form.systems.empty() ? std::vector<std::string>{"-"} : form.systems;
  if (options.sentence_level) {
    print_sentences_of(scorers.front(), systems.front(), form, streams);
  } else if (systems.size() == 1) {
    print_one_system(scorers, systems.front(), form, streams);
  } else {
    print_systems(scorers, systems, form, streams);
  }
}

}  // namespace petlab::cli
