#include "cli/answers/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "cli/answers/asked_definition.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "protocol/trial_directory.h"
#include "questions/compare.h"
#include "questions/conditions.h"
#include "questions/ranking.h"
#include "reports/definition_text.h"

namespace petlab::cli {
namespace {

using results::Value;

struct CompareArguments : StoredArguments {
  std::vector<std::string> sides;
  std::string where;
  std::vector<std::string> metrics;
  std::string split = "test";
  double confidence = 0.95;
  bool rank = false;
  bool show_question = false;
  AnswerOutput output;
};

Value value_or_null(const std::optional<double>& number) {
  return number ? Value(*number) : Value();
}

std::string signed_number(double number) { return (number > 0 ? "+" : "") + short_number(number); }

std::string p_text(const std::optional<double>& p) {
  if (!p) return "—";
  return *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

// examples, their interval, p, McNemar's p of each seed, and what limits the claim; NULL without
// kept predictions.
std::vector<Value> of_examples(const questions::Comparison& one) {
  std::vector<Value> values(6);
  if (one.examples) {
    values[0] = one.examples->examples;
    std::vector<std::string> exact;
    for (const metrics::McNemarTest& test : one.examples->mcnemar) {
      exact.push_back(fmt::format("{}", test.p));
    }
    if (!exact.empty()) values[4] = fmt::format("{}", fmt::join(exact, " "));
  }
  if (const auto over_examples = one.over_examples()) {
    values[1] = over_examples->interval.low;
    values[2] = over_examples->interval.high;
    values[3] = value_or_null(one.examples_p);
    values[5] =
        metrics::limit_of(*one.examples->bootstrap) == metrics::Limit::seeds ? "seeds" : "examples";
  }
  return values;
}

std::string interval_text(const metrics::Interval& interval) {
  return fmt::format("{} … {}", signed_number(interval.low), signed_number(interval.high));
}

void print_comparisons(const CompareArguments& arguments,
                       const std::vector<questions::Comparison>& comparisons, std::ostream& out) {
  std::vector<std::vector<Value>> rows;
  if (!arguments.output.for_people()) {
    for (const questions::Comparison& one : comparisons) {
      rows.push_back(
          {arguments.sides.front(), one.side, one.task.empty() ? Value() : Value(one.task),
           one.metric, one.pairs, one.unpaired, one.baseline_undefined, one.undefined,
           value_or_null(one.baseline_mean), value_or_null(one.mean), value_or_null(one.effect),
           one.interval ? Value(one.interval->low) : Value(),
           one.interval ? Value(one.interval->high) : Value(), value_or_null(one.standardised),
           value_or_null(one.p), value_or_null(one.adjusted_p)});
      for (Value& value : of_examples(one)) rows.back().push_back(std::move(value));
      rows.back().emplace_back(one.verdict);
    }
    arguments.output.print(out,
                           {"baseline",
                            "side",
                            "task",
                            "metric",
                            "pairs",
                            "unpaired",
                            "baseline_undefined",
                            "undefined",
                            "baseline_mean",
                            "mean",
                            "effect",
                            "interval_low",
                            "interval_high",
                            "standardised",
                            "p",
                            "adjusted_p",
                            "examples",
                            "examples_low",
                            "examples_high",
                            "examples_adjusted_p",
                            "mcnemar_p",
                            "limited_by",
                            "verdict"},
                           rows);
    return;
  }
  const bool several = arguments.sides.size() > 2;
  const bool with_examples =
      std::any_of(comparisons.begin(), comparisons.end(),
                  [](const questions::Comparison& one) { return one.over_examples().has_value(); });
  for (const questions::Comparison& one : comparisons) {
    std::vector<Value>& row = rows.emplace_back();
    if (several) row.emplace_back(one.side);
    row.emplace_back(one.task.empty() ? "all tasks" : one.task);
    row.emplace_back(one.metric);
    row.emplace_back(one.pairs);
    const auto number = [&](const std::optional<double>& value) {
      return value ? Value(short_number(*value)) : Value();
    };
    row.push_back(number(one.baseline_mean));
    row.push_back(number(one.mean));
    row.push_back(one.effect ? Value(signed_number(*one.effect)) : Value());
    row.push_back(one.interval ? Value(interval_text(*one.interval)) : Value());
    row.emplace_back(p_text(one.adjusted_p));
    if (with_examples) {
      const auto over_examples = one.over_examples();
      row.push_back(over_examples ? Value(interval_text(over_examples->interval)) : Value());
      row.emplace_back(p_text(one.examples_p));
    }
    row.emplace_back(one.verdict);
  }
  std::vector<std::string> head;
  if (several) head.emplace_back("side");
  head.insert(head.end(), {"task", "metric", "pairs", arguments.sides.front(),
                           several ? "mean" : arguments.sides[1], "effect",
                           fmt::format("{:g} % interval", 100 * arguments.confidence), "p"});
  if (with_examples) head.insert(head.end(), {"interval over examples", "p over examples"});
  head.emplace_back("what it says");
  arguments.output.print(out, head, rows, several ? 3 : 2);
}

questions::SideQuestion side_question(const CompareArguments& arguments) {
  questions::SideQuestion question;
  if (!arguments.where.empty()) question.where = questions::parse_where(arguments.where);
  question.metrics = arguments.metrics;
  question.split = arguments.split;
  return question;
}

void print_rankings(const AnswerOutput& output, const std::vector<questions::Ranking>& rankings,
                    std::ostream& out) {
  std::vector<std::vector<Value>> rows;
  for (const questions::Ranking& one : rankings) {
    for (std::size_t at = 0; at < one.sides.size(); ++at) {
      const double rank = one.ranks.average_ranks[at];
      std::vector<Value>& row = rows.emplace_back();
      row = {one.metric, one.sides[at], static_cast<std::int64_t>(one.tasks.size())};
      row.push_back(output.for_people() ? Value(fmt::format("{:.2f}", rank)) : Value(rank));
      row.emplace_back(one.nemenyi[at]);
      row.emplace_back(one.wilcoxon[at]);
      if (output.for_people()) continue;
      row.push_back(one.ranks.friedman ? Value(one.ranks.friedman->p) : Value());
      row.push_back(one.ranks.iman_davenport ? Value(one.ranks.iman_davenport->p) : Value());
      row.emplace_back(one.ranks.critical_difference);
    }
  }
  std::vector<std::string> head = {"metric",  "side",
                                   "tasks",   output.for_people() ? "average rank" : "average_rank",
                                   "nemenyi", "wilcoxon"};
  if (!output.for_people()) {
    head.insert(head.end(), {"friedman_p", "iman_davenport_p", "critical_difference"});
  }
  output.print(out, head, rows, 2);
}

// Reads what attempts in this runs folder kept, classes and scores or texts.
decltype(questions::CompareRequest::predictions) kept_predictions(std::filesystem::path runs) {
  return
      [runs = std::move(runs)](const questions::ResultOf& result,
                               const std::string& task) -> std::optional<metrics::KeptPredictions> {
        const protocol::TrialDirectory folder(runs, result.trial_id, result.attempt);
        for (const bool texts : {false, true}) {
          const std::filesystem::path predicted = folder.predicted_file(task, texts);
          if (!std::filesystem::exists(predicted)) continue;
          return metrics::read_predictions(folder.gold_file(task, texts), predicted);
        }
        return std::nullopt;
      };
}

reports::Line line_of(const questions::Side& side) {
  reports::Line line;
  line.key = line.name = side.name;
  line.where.conditions = side.where;
  return line;
}

// Means of the sides and the differences that hold over seeds, as a report's definition.
reports::Definition definition_of(const results::ScoreReader& reader,
                                  const questions::CompareRequest& request) {
  reports::TableSpec table;
  table.cells.scale = 1;  // as `compare` shows them, no percentages
  table.rows.push_back(line_of(request.baseline));
  for (const questions::Side& side : request.others) table.rows.push_back(line_of(side));
  table.against = request.baseline.name;
  reports::Line& column = table.columns.emplace_back();
  column.each = {"task", "name"};
  column.name = "{task} {name}";
  return asked_definition("compare", reader, request.where, request.metrics, request.split,
                          {std::move(table)});
}

// The ranks by each metric, as a report's definition.
reports::Definition ranks_definition(const results::ScoreReader& reader,
                                     const questions::RankingRequest& request,
                                     const std::vector<questions::Ranking>& rankings) {
  std::vector<reports::SectionSpec> sections;
  for (const questions::Ranking& one : rankings) {
    reports::RanksSpec ranks;
    if (rankings.size() > 1) ranks.key = fmt::format("metric-{}", sections.size() + 1);
    ranks.title = one.metric;
    ranks.level = request.level;
    for (const questions::Side& side : request.sides) ranks.variants.push_back(line_of(side));
    reports::Line& tasks = ranks.tasks.emplace_back();
    tasks.each = {"task"};
    tasks.where.conditions = {questions::one_of("name", {one.metric})};
    sections.emplace_back(std::move(ranks));
  }
  return asked_definition("compare", reader, request.where, request.metrics, request.split,
                          std::move(sections));
}

int rank(const CompareArguments& arguments, Streams streams) {
  const results::ScoreReader reader(arguments.database_path());
  questions::RankingRequest request;
  static_cast<questions::SideQuestion&>(request) = side_question(arguments);
  for (const std::string& side : arguments.sides) {
    request.sides.push_back(questions::parse_side(side));
  }
  // Without the last bits of 1 - 0.95, which a definition would show.
  request.level = std::round((1 - arguments.confidence) * 1e9) / 1e9;
  const questions::RankingResult result = questions::rank(reader, request);
  if (arguments.show_question) {
    streams.out << reports::to_yaml(ranks_definition(reader, request, result.rankings));
    return kDone;
  }
  print_rankings(arguments.output, result.rankings, streams.out);
  print_notes(streams.err, result.notes);
  return kDone;
}

}  // namespace

std::function<int()> make_compare(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<CompareArguments>();
  app.add_option("SIDES", arguments->sides,
                 "the baseline, then what is compared with it: variants, or conditions such as "
                 "'module_kind=lora'")
      ->required()
      ->expected(2, 100);
  app.add_option("--where", arguments->where, "conditions for all sides, as for petlab results");
  app.add_option("--metric", arguments->metrics, "metrics, divided by commas (default: all)")
      ->delimiter(',');
  app.add_option("--split", arguments->split, "train, validation or test")->capture_default_str();
  app.add_option(
         "--confidence", arguments->confidence,
         "of the interval; what is left of 1 is the probability to call chance a difference")
      ->check(CLI::Range(0.5, 0.999999))
      ->capture_default_str();
  app.add_flag("--rank", arguments->rank,
               "rank three variants or more over tasks; those that share a letter may be equal");
  add_show_question_option(app, arguments->show_question);
  add_stored_arguments(app, *arguments);
  add_format_option(app, arguments->output);
  return [arguments, streams] {
    if (arguments->rank) return rank(*arguments, streams);
    // First, because conditions may name the fields that its catalogs declare.
    const results::ScoreReader reader(arguments->database_path());
    questions::CompareRequest request;
    static_cast<questions::SideQuestion&>(request) = side_question(*arguments);
    request.baseline = questions::parse_side(arguments->sides.front());
    for (std::size_t i = 1; i < arguments->sides.size(); ++i) {
      request.others.push_back(questions::parse_side(arguments->sides[i]));
    }
    request.confidence = arguments->confidence;
    request.predictions = kept_predictions(arguments->runs_path());
    if (arguments->show_question) {
      streams.out << reports::to_yaml(definition_of(reader, request));
      return static_cast<int>(kDone);
    }
    const questions::CompareResult result = questions::compare(reader, request);
    print_comparisons(*arguments, result.comparisons, streams.out);
    print_notes(streams.err, result.notes);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
