#include "cli/exchange/merge_output.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/options/database_option.h"
#include "cli/output/counted.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

nlohmann::ordered_json as_list(const std::vector<exchange::NotTaken>& all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const exchange::NotTaken& one : all) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    if (!one.trial.empty()) entry["trial"] = one.trial;
    entry["text"] = one.text;
    list.push_back(std::move(entry));
  }
  return list;
}

void print_lines(std::ostream& out, const char* word, const std::vector<exchange::NotTaken>& all) {
  for (const exchange::NotTaken& one : all) {
    out << "petlab: " << word << ": " << one.trial << (one.trial.empty() ? "" : " ")
        << reports::printable(one.text) << "\n";
  }
}

}  // namespace

std::filesystem::path runs_to_fill(const StoredArguments& arguments) {
  const std::filesystem::path database = arguments.database_path();
  const std::filesystem::path runs = arguments.runs_path();
  if (remembers_runs(database)) require_runs_folder(runs, database);
  return runs;
}

int print_merge(const exchange::MergeResult& merged, const std::string& database,
                const std::string& source, bool json, Streams streams) {
  if (json) {
    nlohmann::ordered_json document = {{"db", database},
                                       {"from", source},
                                       {"sweeps", merged.sweeps},
                                       {"trials", merged.trials},
                                       {"attempts", merged.attempts},
                                       {"decisions", merged.decisions},
                                       {"remarks", merged.remarks},
                                       {"files", merged.files},
                                       {"bytes", merged.bytes},
                                       {"same", merged.same}};
    document["conflicts"] = as_list(merged.conflicts);
    document["left"] = as_list(merged.left);
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    print_lines(streams.err, "conflict", merged.conflicts);
    print_lines(streams.err, "skipped", merged.left);
    std::string text =
        fmt::format("{}: merged {} ({}, {}), {}; {} identical on both sides", database,
                    counted(merged.trials, "trial"), counted(merged.attempts, "attempt"),
                    bytes_text(merged.bytes), counted(merged.sweeps, "sweep"), merged.same);
    if (merged.decisions > 0) text += ", " + counted(merged.decisions, "decision");
    if (merged.remarks > 0) text += ", " + counted(merged.remarks, "tag or note", "tags and notes");
    if (merged.files > 0)
      text += fmt::format(", copied {} that {} missing", counted(merged.files, "file"),
                          merged.files == 1 ? "was" : "were");
    if (!merged.conflicts.empty()) {
      text += ", " + counted(std::ssize(merged.conflicts), "conflict");
    }
    if (!merged.left.empty()) text += fmt::format(", {} skipped", merged.left.size());
    streams.out << text << "\n";
  }
  return merged.conflicts.empty() && merged.left.empty() ? kDone : kSomeFailed;
}

}  // namespace petlab::cli
