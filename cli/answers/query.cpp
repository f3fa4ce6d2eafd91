#include "cli/answers/query.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/signals.h"
#include "cli/options/database_option.h"
#include "cli/options/duration_option.h"
#include "cli/output/answer_output.h"
#include "cli/output/row_printers.h"
#include "results/error.h"

namespace petlab::cli {
namespace {

// A table needs all its rows before the first is printed.
constexpr std::int64_t kTableRows = 10'000;

struct Format {
  const char* name;
  std::unique_ptr<RowPrinter> (*make)(std::ostream&);
  std::optional<std::int64_t> most_rows;
};
std::unique_ptr<RowPrinter> unkeyed_table(std::ostream& out) {
  return terminal_table_printer(out, 1);
}
constexpr Format kFormats[] = {{"table", unkeyed_table, kTableRows},
                               {"csv", csv_printer, std::nullopt},
                               {"json", json_printer, std::nullopt},
                               {"jsonl", json_lines_printer, std::nullopt}};

struct QueryOptions {
  std::string sql;
  std::filesystem::path database;
  std::string format = "table";
  std::optional<std::int64_t> limit;
  double timeout = 0;  // seconds; 0: none
};

volatile sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

int query(const QueryOptions& options, const std::string& sql, Streams streams) {
  // The second Ctrl-C ends the program, also where it waits for a reader of its output.
  base::handle_unless_ignored(SIGINT, on_interrupt, SA_RESETHAND);
  const Format& format =
      *std::find_if(std::begin(kFormats), std::end(kFormats),
                    [&](const Format& row) { return row.name == options.format; });
  const std::unique_ptr<RowPrinter> printer = format.make(streams.out);
  const std::optional<std::int64_t> most = options.limit ? options.limit : format.most_rows;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.timeout);
  const auto late = [&] { return options.timeout > 0 && std::chrono::steady_clock::now() >= end; };
  std::int64_t rows = 0;
  bool enough = false;
  const bool complete = results::stream_query(
      database_to_read(options.database), sql,
      {[&](const std::vector<std::string>& names) { printer->columns(names); },
       [&](const std::vector<results::Value>& values) {
         enough = rows == most;
         if (enough || interrupted != 0 || late() || !streams.out) return false;
         ++rows;
         enough = !printer->row(values);
         return !enough;
       },
       [&] { return interrupted != 0 || late(); }});
  if (complete || enough) printer->end();
  if (complete || !streams.out) return kDone;  // main() says what became of lost output
  if (enough) {
    streams.err << fmt::format(
        "petlab: only the first {} rows are printed; {}\n", rows,
        options.limit ? "--limit says so" : "--format csv prints all, --limit N others");
    return kDone;
  }
  if (interrupted != 0) {
    streams.err << "petlab: the query was interrupted\n";
    return kInterrupted;
  }
  throw results::Error(fmt::format("the query took longer than --timeout {} s", options.timeout));
}

}  // namespace

std::function<int()> make_query(CLI::App& app, Streams streams) {
  auto options = std::make_shared<QueryOptions>();
  app.add_option("SQL", options->sql,
                 "one SELECT; the views results and sweep_results have a row per trial, metric, "
                 "step and split (docs/reference/sql.md). - reads it from standard input")
      ->required();
  add_database_option(app, options->database);
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  add_format_option(app, options->format, names);
  app.add_option(
         "--limit", options->limit,
         fmt::format("rows to print, at most (default: {} of a table, else all)", kTableRows))
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  add_duration(app, "--timeout", options->timeout, "end a query that takes longer");
  return [options, streams] {
    std::string sql = options->sql;
    if (sql == "-") sql.assign(std::istreambuf_iterator<char>(streams.in), {});
    return query(*options, sql, streams);
  };
}

}  // namespace petlab::cli
