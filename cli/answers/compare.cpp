#include "cli/answers/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "analysis/compare.h"
#include "cli/options/database_option.h"
#include "cli/output/answer_output.h"
#include "questions/conditions.h"

namespace petlab::cli {
namespace {

using results::Value;

struct CompareArguments {
  std::filesystem::path database;
  std::vector<std::string> sides;
  std::string where;
  std::vector<std::string> metrics;
  std::string split = "test";
  double confidence = 0.95;
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

void print_comparisons(const CompareArguments& arguments,
                       const std::vector<analysis::Comparison>& comparisons, std::ostream& out) {
  std::vector<std::vector<Value>> rows;
  if (!arguments.output.for_people()) {
    for (const analysis::Comparison& one : comparisons) {
      rows.push_back(
          {arguments.sides.front(), one.side, one.task.empty() ? Value() : Value(one.task),
           one.metric, one.pairs, one.unpaired, one.baseline_undefined, one.undefined,
           value_or_null(one.baseline_mean), value_or_null(one.mean), value_or_null(one.effect),
           one.interval ? Value(one.interval->low) : Value(),
           one.interval ? Value(one.interval->high) : Value(), value_or_null(one.standardised),
           value_or_null(one.p), value_or_null(one.adjusted_p), one.verdict});
    }
    arguments.output.print(
        out,
        {"baseline", "side", "task", "metric", "pairs", "unpaired", "baseline_undefined",
         "undefined", "baseline_mean", "mean", "effect", "interval_low", "interval_high",
         "standardised", "p", "adjusted_p", "verdict"},
        rows);
    return;
  }
  const bool several = arguments.sides.size() > 2;
  for (const analysis::Comparison& one : comparisons) {
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
    row.push_back(one.interval ? Value(fmt::format("{} … {}", signed_number(one.interval->low),
                                                   signed_number(one.interval->high)))
                               : Value());
    row.emplace_back(p_text(one.adjusted_p));
    row.emplace_back(one.verdict);
  }
  std::vector<std::string> head;
  if (several) head.emplace_back("side");
  head.insert(
      head.end(),
      {"task", "metric", "pairs", arguments.sides.front(), several ? "mean" : arguments.sides[1],
       "effect", fmt::format("{:g} % interval", 100 * arguments.confidence), "p", "what it says"});
  arguments.output.print(out, head, rows);
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
  add_database_option(app, arguments->database);
  add_format_option(app, arguments->output);
  return [arguments, streams] {
    analysis::CompareRequest request;
    if (!arguments->where.empty()) request.where = questions::parse_where(arguments->where);
    request.baseline = analysis::parse_side(arguments->sides.front());
    for (std::size_t i = 1; i < arguments->sides.size(); ++i) {
      request.others.push_back(analysis::parse_side(arguments->sides[i]));
    }
    request.metrics = arguments->metrics;
    request.split = arguments->split;
    request.confidence = arguments->confidence;
    const results::ScoreReader reader(database_to_read(arguments->database));
    const analysis::CompareResult result = analysis::compare(reader, request);
    print_comparisons(*arguments, result.comparisons, streams.out);
    print_notes(streams.err, result.notes);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
