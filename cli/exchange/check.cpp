#include "cli/exchange/check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/options/json_option.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/counted.h"
#include "cli/output/shell_word.h"
#include "exchange/check.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

using exchange::CheckReport;
using exchange::Finding;
using nlohmann::ordered_json;

struct CheckArguments : StoredArguments {
  bool json = false;
};

ordered_json to_json(const CheckReport& report, const exchange::CheckedPlaces& places) {
  ordered_json document = {{"db", places.database.string()}, {"runs", places.runs.string()},
                           {"trials", report.trials},        {"attempts", report.attempts},
                           {"values", report.values},        {"artifacts", report.artifacts},
                           {"bytes", report.bytes},          {"findings", ordered_json::array()},
                           {"notes", ordered_json::array()}};
  for (const Finding& one : report.findings) {
    ordered_json finding = {{"kind", one.kind}};
    if (!one.trial.empty()) finding["trial"] = one.trial;
    if (one.attempt > 0) finding["attempt"] = one.attempt;
    if (!one.file.empty()) finding["file"] = one.file.string();
    finding["text"] = one.text;
    finding["mend"] = one.fix;
    document["findings"].push_back(std::move(finding));
  }
  for (const std::string& note : report.notes) document["notes"].push_back(note);
  return document;
}

void print_findings(const CheckReport& report, const std::string& database, std::ostream& out) {
  for (const Finding& one : report.findings) {
    out << one.kind << ": ";
    if (!one.trial.empty()) out << one.trial;
    if (one.attempt > 0) out << " attempt " << one.attempt;
    if (!one.trial.empty()) out << ": ";
    out << reports::printable(one.text) << "\n";
    if (!one.file.empty()) out << "  file: " << reports::printable(one.file.string()) << "\n";
    out << "  fix: " << reports::printable(one.fix) << "\n";
  }
  for (const std::string& note : report.notes) {
    out << "note: " << reports::printable(note) << "\n";
  }
  out << fmt::format("{}: {}, {}, {}, {} ({} read): {}\n", database,
                     counted(report.trials, "trial"), counted(report.attempts, "attempt"),
                     counted(report.values, "value"), counted(report.artifacts, "artifact"),
                     bytes_text(report.bytes),
                     report.findings.empty() ? "no problems found"
                                             : counted(std::ssize(report.findings), "finding"));
}

int check_database(const CheckArguments& arguments, Streams streams) {
  exchange::CheckedPlaces places;
  places.database = arguments.database_path();
  std::error_code error;
  if (!std::filesystem::exists(places.database, error)) {
    throw std::invalid_argument(
        fmt::format("{}: the database does not exist", places.database.string()));
  }
  places.runs = arguments.runs_path();
  places.database_word = "--db " + shell_word(places.database.string());
  places.runs_word = "--runs " + shell_word(places.runs.string());
  const CheckReport report = exchange::check(places);
  if (arguments.json) {
    streams.out
        << to_json(report, places).dump(1, ' ', false, ordered_json::error_handler_t::replace)
        << "\n";
  } else {
    print_findings(report, places.database.string(), streams.out);
  }
  return report.findings.empty() ? kDone : kSomeFailed;
}

}  // namespace

std::function<int()> make_check(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<CheckArguments>();
  add_json_option(app, arguments->json, "print one JSON object");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return check_database(*arguments, streams); };
}

}  // namespace petlab::cli
