#include "cli/report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/database_option.h"
#include "reports/builtin.h"
#include "reports/error.h"
#include "reports/load.h"
#include "reports/output.h"
#include "reports/render.h"
#include "reports/table.h"
#include "reports/words.h"
#include "sweeps/catalog.h"

namespace petlab::cli {
namespace {

struct ReportOptions {
  std::string report;
  std::string database;
  std::vector<std::string> sweeps;
  std::vector<std::string> formats;
  std::string out;
  bool list = false;
};

reports::Definition definition_of(const std::string& report) {
  const bool is_file = report.find('/') != std::string::npos || report.ends_with(".yaml") ||
                       report.ends_with(".yml");
  if (!is_file) return reports::builtin_report(report);
  std::ifstream in(report, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    throw std::invalid_argument(report +
                                ": cannot read it, must be a report's definition "
                                "(petlab report --list shows those that need no file)");
  }
  return reports::parse_definition(text.str(), report);
}

reports::TerminalOptions terminal_options(const Streams& streams) {
  if (&streams.out != &std::cout || isatty(STDOUT_FILENO) == 0) return {};
  reports::TerminalOptions options;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  options.colour = (no_colour == nullptr || *no_colour == '\0') &&
                   (terminal == nullptr || std::string(terminal) != "dumb");
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) options.width = size.ws_col;
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

int list_reports(std::ostream& out) {
  const std::vector<std::string> names = reports::builtin_reports();
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    out << fmt::format("{:<{}}  {}\n", name, width, reports::builtin_report(name).about);
  }
  return kDone;
}

int report(const ReportOptions& options, const Streams& streams) {
  if (options.list) return list_reports(streams.out);
  if (options.report.empty()) {
    throw std::invalid_argument("which report? name one of " +
                                reports::joined(reports::builtin_reports()) +
                                ", or the file of a definition");
  }
  const std::vector<const reports::Format*> formats = formats_of(options);
  const reports::Definition definition = definition_of(options.report);
  const std::filesystem::path database = database_to_read(options.database);
  reports::Definition asked = definition;
  asked.sweeps = reports::choose_sweeps(definition, options.sweeps, database);
  reports::Dataset data = reports::load_dataset(database, asked.sweeps, asked.where);
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    data.known_words["task"].insert(task.name);
  }
  for (const sweeps::ModuleRow& module : sweeps::modules()) {
    data.known_words["module_kind"].emplace(module.kind);
  }
  const reports::Table table = reports::make_table(asked, data, reports::published_numbers());

  if (options.out.empty()) {
    const reports::Format* format =
        formats.empty() ? reports::find_format("terminal") : formats.front();
    streams.out << format->render(table, terminal_options(streams));
    return kDone;
  }
  std::vector<const reports::Format*> files;
  bool printed = formats.empty();
  for (const reports::Format* format : formats) {
    if (format->extension.empty()) {
      printed = true;
    } else {
      files.push_back(format);
    }
  }
  if (files.empty()) {
    if (!formats.empty()) {
      throw std::invalid_argument(
          "--out writes files, --format terminal is none: name another "
          "format too, or leave --out away");
    }
    for (const reports::Format& format : reports::formats()) {
      if (!format.extension.empty()) files.push_back(&format);
    }
  }
  if (printed) {
    streams.out << reports::to_terminal(table, terminal_options(streams)) << "\n";
  }
  for (const std::filesystem::path& file : reports::write_files(table, options.out, files)) {
    streams.out << "wrote " << file.string() << "\n";
  }
  return kDone;
}

}  // namespace

std::function<int()> make_report(CLI::App& app, Streams streams) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("report", options->report,
                 "a shipped report (--list), or the file of a definition (.yaml)");
  app.add_option("--db", options->database, "the database; default: petlab.db in this folder");
  app.add_option("--sweep", options->sweeps, "what to report on, in place of the report's own")
      ->delimiter(',');
  app.add_option("--format", options->formats,
                 "terminal (default), markdown, csv, csv-long, html, json; with --out several, "
                 "and by default all")
      ->delimiter(',');
  app.add_option("--out", options->out, "folder to write files to");
  app.add_flag("--list", options->list, "the shipped reports");
  return [options, streams] { return report(*options, streams); };
}

}  // namespace petlab::cli
