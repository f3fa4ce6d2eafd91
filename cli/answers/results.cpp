#include "cli/answers/results.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "analysis/summary.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "questions/conditions.h"

namespace petlab::cli {
namespace {

using results::Value;

struct ResultsArguments : StoredArguments {
  std::string where;
  std::string by;
  std::string pivot;
  std::vector<std::string> metrics;
  std::string split = "test";
  AnswerOutput output;
};

std::string cell_text(const std::optional<analysis::SummaryCell>& cell) {
  if (!cell) return "—";
  if (cell->undefined > 0) return fmt::format("undefined ({})", cell->n);
  std::string text = short_number(cell->mean.value());
  if (cell->deviation) text += " ± " + short_number(*cell->deviation);
  return fmt::format("{} ({})", text, cell->n);
}

void print_summary(const ResultsArguments& arguments, const analysis::Summary& summary,
                   std::ostream& out) {
  const bool for_people = arguments.output.for_people();
  bool pending = false;
  for (const analysis::SummaryRow& row : summary.rows) pending = pending || row.pending > 0;
  std::vector<std::string> columns = summary.by;
  for (const std::string& name : summary.columns) {
    if (for_people) {
      columns.push_back(name);
    } else {
      for (const char* part : {"_mean", "_sd", "_n"}) columns.push_back(name + part);
    }
  }
  if (pending || !for_people) columns.emplace_back("pending");
  std::vector<std::vector<Value>> rows;
  for (const analysis::SummaryRow& row : summary.rows) {
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
    if (pending || !for_people) line.emplace_back(row.pending);
  }
  arguments.output.print(out, columns, rows);
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
  app.add_option("--split", arguments->split, "train, validation or test")->capture_default_str();
  add_file_argument(app, *arguments, streams);
  add_database_option(app, arguments->database);
  add_format_option(app, arguments->output);
  return [arguments, streams] {
    analysis::SummaryRequest request;
    if (!arguments->where.empty()) request.where = questions::parse_where(arguments->where);
    add_sweep_condition(arguments->file, request.where);
    if (!arguments->by.empty()) request.by = questions::parse_words(arguments->by, "--by");
    if (!arguments->pivot.empty()) {
      const std::vector<results::Word> words = questions::parse_words(arguments->pivot, "--pivot");
      if (words.size() > 1) {
        throw std::invalid_argument(
            fmt::format("--pivot: found {} fields, wanted one", words.size()));
      }
      request.pivot = words.front();
    }
    request.metrics = arguments->metrics;
    request.split = arguments->split;
    const results::ScoreReader reader(arguments->database_path());
    const analysis::Summary summary = analysis::summarise(reader, request);
    print_summary(*arguments, summary, streams.out);
    print_notes(streams.err, summary.notes);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
