#include "cli/answers/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/file_problems.h"
#include "base/shown.h"
#include "cli/answers/asked_definition.h"
#include "cli/answers/database_reports.h"
#include "cli/options/database_option.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/screen.h"
#include "questions/conditions.h"
#include "reports/builtin.h"
#include "reports/curve.h"
#include "reports/definition_text.h"
#include "reports/error.h"
#include "reports/names.h"
#include "reports/output.h"
#include "reports/render.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/words.h"
#include "results/store.h"
#include "sweeps/locations.h"

namespace petlab::cli {
namespace {

struct ReportOptions {
  std::string report;
  std::string database;
  std::vector<std::string> sweeps;
  std::vector<std::string> formats;
  std::string out;
  std::string show = "both";
  std::string check;
  reports::CurveRequest curve;
  std::vector<std::string> curve_where;
  bool show_question = false;
  bool list = false;
};

reports::RenderOptions render_options(const Streams& streams) {
  reports::RenderOptions options;
  try {
    options.home = sweeps::find_locations(sweeps::process_environment()).home;
  } catch (const std::exception&) {
    // No home, no tools of figures, which say so where they are wanted.
  }
  if (&streams.out != &std::cout || isatty(STDOUT_FILENO) == 0) return options;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  options.colour = (no_colour == nullptr || *no_colour == '\0') &&
                   (terminal == nullptr || std::string(terminal) != "dumb");
  options.width = terminal_width(streams.out);
  return options;
}

std::vector<const reports::Format*> formats_of(const ReportOptions& options) {
  std::vector<std::string> known;
  for (const reports::Format& format : reports::formats()) known.emplace_back(format.name);
  std::vector<const reports::Format*> chosen;
  for (const std::string& name : options.formats) {
    const reports::Format* format = reports::find_format(name);
    if (format == nullptr) {
      throw std::invalid_argument(fmt::format("--format is '{}', must be one of {}{}", name,
                                              reports::joined(known),
                                              reports::did_you_mean(name, known)));
    }
    if (std::find(chosen.begin(), chosen.end(), format) == chosen.end()) chosen.push_back(format);
  }
  if (options.out.empty() && chosen.size() > 1) {
    throw std::invalid_argument(
        fmt::format("--format names {} formats, of which one can be printed; write them to files "
                    "with --out",
                    chosen.size()));
  }
  return chosen;
}

reports::Show show_of(const std::string& word) {
  const std::vector<std::string> words = {"both", "measured", "published", "difference"};
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) {
    throw std::invalid_argument(fmt::format("--show is '{}', must be one of {}{}", word,
                                            reports::joined(words),
                                            reports::did_you_mean(word, words)));
  }
  return static_cast<reports::Show>(found - words.begin());
}

int list_reports(std::ostream& out) {
  const std::vector<std::string> names = reports::builtin_reports();
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    out << fmt::format("{:<{}}  {}\n", name, width, reports::builtin_report(name).about);
  }
  return kDone;
}

// Learns the catalogs of the database. Mistakes in a definition are reported without one.
void learn_fields(const std::string& named) {
  try {
    const results::Reader reader(database_to_read(named));
  } catch (const std::exception&) {
    // Reported when the report is made.
  }
}

// Only pages have the trials: telling them takes longer than a table.
bool makes_pages(const ReportOptions& options) {
  return (options.formats.empty() && !options.out.empty()) ||
         std::find(options.formats.begin(), options.formats.end(), "html") != options.formats.end();
}

int check(const std::string& file, const Streams& streams) {
  const reports::Definition definition = definition_named(file);
  const reports::CheckedNames names =
      reports::check_names(definition, {}, reports::published_numbers());
  if (!names.problems.empty()) throw base::FileProblemsError(names.problems);
  streams.out << file << ": no mistake found; whether its fields and words exist is checked where "
              << "there is a database\n";
  return kDone;
}

// Formats of figures are of reports that have some.
std::vector<const reports::Format*> file_formats(const std::vector<const reports::Format*>& named,
                                                 const reports::Report& report) {
  const bool figures = !reports::figures_of(report).empty();
  std::vector<const reports::Format*> files;
  for (const reports::Format* format : named) {
    if (format->extension.empty()) continue;
    if (format->of_figures && !figures) {
      throw std::invalid_argument(fmt::format("--format {} is of figures, and report {} has none",
                                              format->name, report.name));
    }
    files.push_back(format);
  }
  if (!files.empty()) return files;
  if (!named.empty()) {
    throw std::invalid_argument(
        "--out writes files, --format terminal is none: name another "
        "format too, or leave --out away");
  }
  for (const reports::Format& format : reports::formats()) {
    if (!format.extension.empty() && (figures || !format.of_figures)) files.push_back(&format);
  }
  return files;
}

std::string printed_text(const reports::Format& format, const reports::Report& report,
                         const reports::RenderOptions& how) {
  if (!format.of_figures) return format.render(report, how);
  const std::vector<reports::Report> figures = reports::figures_of(report);
  if (figures.size() != 1) {
    throw std::invalid_argument(fmt::format(
        "--format {} prints one figure, and report {} has {}; write them to files with --out",
        format.name, report.name, figures.empty() ? "none" : std::to_string(figures.size())));
  }
  return format.render(figures.front(), how);
}

int report(const ReportOptions& options, const Streams& streams) {
  if (options.list) return list_reports(streams.out);
  if (!options.check.empty()) return check(options.check, streams);
  if (options.report.empty()) {
    throw std::invalid_argument("which report? name one of " +
                                reports::joined(reports::builtin_reports()) +
                                ", or the file of a definition");
  }
  if (options.show_question && options.report != kCurveReport) {
    throw std::invalid_argument("--show-question is for report curve: " + options.report +
                                " has a definition");
  }
  const std::vector<const reports::Format*> formats = formats_of(options);
  const reports::Show show = show_of(options.show);
  const bool without_definition = options.report == kAllReports || options.report == kCurveReport;
  // First, because a definition may name the fields that the database's catalogs declare.
  learn_fields(options.database);
  const reports::Definition definition =
      without_definition ? reports::Definition() : definition_named(options.report);
  const std::filesystem::path database = database_to_read(options.database);
  const For what = makes_pages(options) ? For::page : For::text;
  reports::Report whole;
  if (options.report == kAllReports) {
    if (!options.sweeps.empty()) {
      throw std::invalid_argument("report all shows each report's own sweep; leave --sweep away");
    }
    whole = all_reports_on(database, what);
  } else if (options.report == kCurveReport) {
    reports::CurveRequest curve = options.curve;
    if (!options.curve_where.empty()) {
      curve.where =
          questions::parse_where(fmt::format("{}", fmt::join(options.curve_where, " and ")));
    }
    if (options.show_question) {
      streams.out << reports::to_yaml(curve_question(curve, options.sweeps, database));
      return kDone;
    }
    whole = curve_on(curve, options.sweeps, database, what);
  } else {
    whole = report_on(definition, options.sweeps, database, what);
  }
  complete_trials(whole.trials, database);
  const reports::Report made = reports::shown(std::move(whole), show);
  const reports::RenderOptions how = render_options(streams);
  if (options.out.empty()) {
    const reports::Format* format =
        formats.empty() ? reports::find_format("terminal") : formats.front();
    streams.out << printed_text(*format, made, how);
    return kDone;
  }
  const std::vector<const reports::Format*> files = file_formats(formats, made);
  const bool printed =
      formats.empty() || std::any_of(formats.begin(), formats.end(),
                                     [](const auto* format) { return format->extension.empty(); });
  if (printed) streams.out << reports::to_terminal(made, how) << "\n";
  const reports::Written written = reports::write_files(made, options.out, files, how);
  for (const std::filesystem::path& file : written.files) {
    streams.out << "wrote " << file.string() << "\n";
  }
  for (const std::string& missing : written.missing)
    streams.err << "petlab: " << base::printable_message(missing) << "\n";
  // Where pictures were asked for by name, their absence is a failure.
  const bool asked = std::any_of(formats.begin(), formats.end(), [](const auto* format) {
    return format->of_figures && format->name != "vega";
  });
  return asked && !written.missing.empty() ? kSomeFailed : kDone;
}

}  // namespace

std::function<int()> make_report(CLI::App& app, Streams streams) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option(
      "report", options->report,
      "a shipped report (--list), the file of a definition (.yaml), all: every report on "
      "one page, or curve: a figure of any sweep (--x, --y)");
  add_database_option(app, options->database);
  app.add_option("--sweep", options->sweeps, "what to report on, in place of the report's own")
      ->delimiter(',')
      ->transform(sweep_or_file([options, streams](const std::string& file) {
        use_database_of(file, options->database, streams);
      }));
  CLI::Option* const format =
      app.add_option("--format", options->formats,
                     "terminal (default), markdown, csv, csv-long, html, json, latex; for figures "
                     "vega, svg, pdf, png; with --out several (default: all)")
          ->delimiter(',');
  app.add_flag_callback(
         "--json", [options] { options->formats = {"json"}; }, "short for --format json")
      ->excludes(format);
  app.add_option("--out", options->out, "folder to write files to");
  app.add_option("--show", options->show,
                 "measured, published, both (default) or difference: which numbers cells show");
  app.add_flag("--list", options->list, "the shipped reports");
  app.add_option("--check", options->check, "look for mistakes in a definition, and end");
  const std::string group = "report curve";
  app.add_option("--x", options->curve.x, "a field of the trials, or step for learning curves")
      ->group(group);
  app.add_option("--y", options->curve.y, "a metric, or a field")->group(group);
  app.add_option("--series", options->curve.series,
                 "fields that make a curve of their own; default: the variant, and the task where "
                 "there are several")
      ->delimiter(',')
      ->group(group);
  app.add_option("--split", options->curve.split,
                 "default: test, and validation for --x step; progress: the loss while it trains")
      ->group(group);
  app.add_option("--where", options->curve_where,
                 "conditions of the trials shown, as for petlab results")
      ->group(group);
  app.add_flag("--log-x", options->curve.log_x, "x by its logarithm")->group(group);
  app.add_flag("--log-y", options->curve.log_y, "y by its logarithm")->group(group);
  add_show_question_option(app, options->show_question);
  return [options, streams] { return report(*options, streams); };
}

}  // namespace petlab::cli
