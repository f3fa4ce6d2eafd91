#include "cli/setup/doctor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/options/database_option.h"
#include "cli/options/json_option.h"
#include "cli/setup/doctor_checks.h"
#include "reports/text.h"
#include "results/error.h"

namespace petlab::cli {
namespace {

struct DoctorArguments {
  std::string database;
  std::string named;  // the path given with --db
  std::string runs;
  std::string worker;
  bool json = false;
};

DoctorRequest doctor_request(const DoctorArguments& arguments) {
  if (!arguments.database.empty() && !arguments.named.empty()) {
    throw std::invalid_argument("found DATABASE and --db, expected one of them");
  }
  DoctorRequest request;
  request.database = find_database(arguments.named.empty() ? arguments.database : arguments.named,
                                   DatabaseUse::may_create)
                         .file;
  try {
    request.runs = runs_folder_of(request.database, arguments.runs);
  } catch (const results::Error&) {
    // diagnose() reports the problem with the database.
    request.runs = std::filesystem::path(request.database).replace_extension(".runs");
  }
  request.worker = arguments.worker;
  return request;
}

nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Check& check : diagnosis.checks) {
    nlohmann::ordered_json row = {{"group", check.group},
                                  {"name", check.name},
                                  {"state", std::string(to_string(check.state))},
                                  {"found", check.found}};
    if (!check.fix.empty()) row["mend"] = check.fix;
    if (!check.facts.empty()) row["facts"] = check.facts;
    checks.push_back(std::move(row));
  }
  return {{"ok", diagnosis.fine()}, {"checks", std::move(checks)}, {"uses", diagnosis.uses}};
}

std::string on_one_line(const std::string& text) {
  return fmt::format("{}", fmt::join(reports::printable_lines(text), " "));
}

void print_checks(std::ostream& out, const Diagnosis& diagnosis) {
  std::string group;
  for (const Check& check : diagnosis.checks) {
    if (check.group != group) out << (group.empty() ? "" : "\n") << check.group << "\n";
    group = check.group;
    out << fmt::format("  {:<7}  {:<9}  {}\n", to_string(check.state), check.name,
                       on_one_line(check.found));
    if (!check.fix.empty()) out << fmt::format("  {:<7}  {:<9}  -> {}\n", "", "", check.fix);
  }
  const nlohmann::ordered_json& uses = diagnosis.uses;
  if (uses.is_object() && uses.at("worker").is_string()) {
    const auto slots = uses.at("slots").get<std::int64_t>();
    out << fmt::format("\npetlab run would use {} slot{} on {} with {}\n", slots,
                       slots == 1 ? "" : "s", uses.at("device") == "gpu" ? "GPUs" : "CPU cores",
                       uses.at("worker").get<std::string>());
  }
}

int doctor(const DoctorArguments& arguments, Streams streams) {
  const Diagnosis diagnosis = diagnose(doctor_request(arguments), sweeps::process_environment());
  if (arguments.json) {
    streams.out << diagnosis_json(diagnosis).dump(-1, ' ', false,
                                                  nlohmann::json::error_handler_t::replace)
                << "\n";
  } else {
    print_checks(streams.out, diagnosis);
  }
  return diagnosis.fine() ? kDone : kSomeFailed;
}

}  // namespace

std::function<int()> make_doctor(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<DoctorArguments>();
  app.add_option("DATABASE", arguments->database,
                 "the database whose folder to check; it need not exist");
  app.add_option("--db", arguments->named, "the same");
  app.add_option("--runs", arguments->runs,
                 "the runs folder (default: the one in the database, else next to it)");
  app.add_option("--worker", arguments->worker, "the training program (default: petlab-trainer)");
  add_json_option(app, arguments->json, "print one JSON object");
  app.footer("Exit code 0: petlab run works here; 1: the list shows a problem and its fix.");
  return [arguments, streams] { return doctor(*arguments, streams); };
}

}  // namespace petlab::cli
