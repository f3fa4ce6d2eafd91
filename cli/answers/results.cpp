#include "cli/answers/results.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "cli/answers/asked_definition.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "questions/conditions.h"
#include "questions/summary.h"
#include "questions/values.h"
#include "reports/definition_text.h"

namespace petlab::cli {
namespace {

using results::Value;

struct ResultsArguments : StoredArguments {
  std::string where;
  std::string by;
  std::string pivot;
  std::vector<std::string> metrics;
  std::vector<std::string> splits = {"test"};
  bool values = false;
  std::string steps = "selected";
  bool show_question = false;
  AnswerOutput output;
};

std::string cell_text(const std::optional<questions::SummaryCell>& cell) {
  if (!cell) return "—";
  if (cell->undefined > 0) return fmt::format("undefined ({})", cell->n);
  std::string text = short_number(cell->mean.value());
  if (cell->deviation) text += " ± " + short_number(*cell->deviation, cell->mean);
  return fmt::format("{} ({})", text, cell->n);
}

void print_summary(const ResultsArguments& arguments, const questions::Summary& summary,
                   std::ostream& out) {
  const bool for_people = arguments.output.for_people();
  bool pending = !for_people;
  bool stopped = !for_people;
  for (const questions::SummaryRow& row : summary.rows) {
    pending = pending || row.pending > 0;
    stopped = stopped || row.stopped_early > 0;
  }
  std::vector<std::string> columns = summary.by;
  for (const std::string& name : summary.columns) {
    if (for_people) {
      columns.push_back(name);
    } else {
      for (const char* part : {"_mean", "_sd", "_n"}) columns.push_back(name + part);
    }
  }
  if (pending) columns.emplace_back("pending");
  if (stopped) columns.emplace_back(for_people ? "stopped early" : "stopped_early");
  std::vector<std::vector<Value>> rows;
  for (const questions::SummaryRow& row : summary.rows) {
    std::vector<Value>& line = rows.emplace_back(row.key);
    for (const auto& cell : row.cells) {
      if (for_people) {
        line.emplace_back(cell_text(cell));
        continue;
      }
      line.push_back(cell && cell->mean ? Value(*cell->mean) : Value());
      line.push_back(cell && cell->deviation ? Value(*cell->deviation) : Value());
      line.emplace_back(cell ? cell->n : std::int64_t{0});
    }
    if (pending) line.emplace_back(row.pending);
    if (stopped) line.emplace_back(row.stopped_early);
  }
  arguments.output.print(out, columns, rows, summary.by.size());
}

// The same table as a report's definition.
reports::Definition definition_of(const results::ScoreReader& reader,
                                  const questions::SummaryRequest& request,
                                  const questions::Summary& summary) {
  reports::TableSpec table;
  table.cells.scale = 1;  // as `results` shows them, no percentages
  reports::Line& row = table.rows.emplace_back();
  row.each = summary.by;
  if (row.each.empty()) row.key = row.name = "all";
  reports::Line& column = table.columns.emplace_back();
  if (request.pivot) column.each.push_back(request.pivot->name);
  const bool name_in_row = std::count(summary.by.begin(), summary.by.end(), "name") > 0;
  if (!name_in_row && column.each != std::vector<std::string>{"name"})
    column.each.push_back("name");
  if (column.each.empty()) column.key = column.name = "value";
  return asked_definition("results", reader, request.where, request.metrics, request.split,
                          {std::move(table)});
}

// Options that only one of the two answers has.
void check_options(const ResultsArguments& arguments) {
  if (arguments.values && !arguments.pivot.empty()) {
    throw std::invalid_argument("--pivot is for means and cannot be combined with --values");
  }
  if (arguments.values && arguments.show_question) {
    throw std::invalid_argument(
        "--show-question: a report has no rows of values; leave --values out");
  }
  if (!arguments.values && arguments.splits.size() > 1) {
    throw std::invalid_argument(fmt::format(
        "--split: found {} splits, expected one; --values shows several", arguments.splits.size()));
  }
  if (!arguments.values && arguments.steps != "selected") {
    throw std::invalid_argument("--steps all needs --values: means are over selected values");
  }
}

int print_values(const ResultsArguments& arguments, questions::ValuesRequest request,
                 Streams streams) {
  request.metrics = arguments.metrics;
  request.splits = arguments.splits;
  if (arguments.steps == "all") request.steps = results::ScoreQuestion::Steps::every;
  const std::unique_ptr<RowPrinter> printer = arguments.output.printer(streams.out);
  questions::each_value(
      results::ScoreReader(arguments.database_path()), request,
      {[&](const std::vector<std::string>& columns) { printer->columns(columns); },
       [&](const std::vector<Value>& row) { printer->row(arguments.output.shown(row)); }});
  printer->end();
  return kDone;
}

}  // namespace

std::function<int()> make_results(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ResultsArguments>();
  app.add_option("--where", arguments->where,
                 "which trials and scores: 'task=cola and module_kind=adapter,lora and seed<45'; "
                 "petlab help fields lists the words");
  app.add_option("--by", arguments->by,
                 "fields, divided by commas, that make a row (default: the variant, and where the "
                 "trials of a variant differ)");
  app.add_option("--pivot", arguments->pivot, "a field whose values become columns");
  app.add_option("--metric", arguments->metrics,
                 "metrics, divided by commas (default: all of the split)")
      ->delimiter(',');
  app.add_option("--split", arguments->splits,
                 "train, validation or test; with --values several, divided by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--values", arguments->values,
               "a row for each trial, split and metric instead of means over seeds");
  app.add_option("--steps", arguments->steps,
                 "with --values: the value that counts (selected) or every step (all)")
      ->check(CLI::IsMember({"selected", "all"}))
      ->capture_default_str();
  add_show_question_option(app, arguments->show_question);
  add_file_argument(app, *arguments, streams);
  add_database_option(app, arguments->database);
  add_format_option(app, arguments->output);
  return [arguments, streams] {
    check_options(*arguments);
    // First, because conditions may name the fields that its catalogs declare.
    const results::ScoreReader reader(arguments->database_path());
    questions::SummaryRequest request;
    if (!arguments->where.empty()) request.where = questions::parse_where(arguments->where);
    add_sweep_condition(arguments->file, request.where);
    if (!arguments->by.empty()) request.by = questions::parse_words(arguments->by, "--by");
    if (arguments->values) {
      questions::ValuesRequest values{request.where, {}, {}, {}};
      if (!arguments->by.empty()) values.by = request.by;
      return print_values(*arguments, std::move(values), streams);
    }
    if (!arguments->pivot.empty()) {
      const std::vector<results::Word> words = questions::parse_words(arguments->pivot, "--pivot");
      if (words.size() > 1) {
        throw std::invalid_argument(
            fmt::format("--pivot: found {} fields, expected one", words.size()));
      }
      request.pivot = words.front();
    }
    request.metrics = arguments->metrics;
    request.split = arguments->splits.at(0);
    const questions::Summary summary = questions::summarise(reader, request);
    if (arguments->show_question) {
      streams.out << reports::to_yaml(definition_of(reader, request, summary));
      return static_cast<int>(kDone);
    }
    print_summary(*arguments, summary, streams.out);
    print_notes(streams.err, summary.notes);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
