#include "cli/answers/show_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "protocol/code_record.h"
#include "results/code.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

std::optional<protocol::CodeRecord> record_of(const ShownCode& code) {
  const std::string digest = results::code_of(code.said).record;
  if (digest.empty()) return std::nullopt;
  return protocol::read_code_record(code.runs, digest);
}

void print_code_json(std::ostream& out, const ShownCode& code) {
  ordered_json all = {{"trial_id", code.trial_id}, {"attempt", code.attempt}, {"record", nullptr}};
  if (const auto record = record_of(code)) all["record"] = ordered_json::parse(to_text(*record));
  const ordered_json worker = base::shallow_ordered_json_or_none(code.said.worker);
  for (const char* key : {"python", "packages", "modules", "libtorch"}) {
    all[key] = worker.is_object() && worker.contains(key) ? worker.at(key) : ordered_json();
  }
  out << all.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

void print_section(std::ostream& out, const std::string& title, const Pairs& pairs) {
  if (pairs.empty()) return;
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, name.size());
  out << title << "\n";
  for (const auto& [name, value] : pairs) {
    out << fmt::format("  {:<{}}  {}\n", base::printable(name), width, base::printable(value));
  }
}

Pairs record_pairs(const protocol::CodeRecord& record) {
  Pairs pairs = {{"command", fmt::format("{}", fmt::join(record.command, " "))}};
  for (const protocol::CodeFile& file : record.files) {
    pairs.emplace_back(file.path, file.digest.empty() ? "not read" : file.digest);
  }
  const auto& repository = record.repository;
  if (!repository) {
    pairs.emplace_back("repository", "not captured: " + record.why_no_repository);
    return pairs;
  }
  pairs.emplace_back("repository", repository->folder);
  pairs.emplace_back(
      "commit", fmt::format("{}{}, {}", repository->commit,
                            repository->branch.empty() ? "" : " on " + repository->branch,
                            repository->clean ? "clean" : "with uncommitted changes (--diff)"));
  for (const auto& [path, digest] : repository->changed) {
    pairs.emplace_back("changed", digest == "deleted" ? path + " (deleted)" : path);
  }
  for (const auto& [path, why] : repository->left_out) {
    pairs.emplace_back("left out", path + ": " + why);
  }
  return pairs;
}

}  // namespace

void print_code(std::ostream& out, const ShownCode& code, bool json) {
  if (json) return print_code_json(out, code);
  const auto record = record_of(code);
  print_section(out, fmt::format("code of attempt {} of {}", code.attempt, code.trial_id),
                record ? record_pairs(*record) : Pairs{{"command", "not captured"}});
  if (record) {
    print_section(out, "environment", {record->environment.begin(), record->environment.end()});
  }
  Pairs packages;
  Pairs modules;
  for (const auto& [name, value] : results::code_of(code.said).parts) {
    if (name == "script" || name == "tree") continue;
    const std::string rest = name.substr(name.find(' ') + 1);
    (name.starts_with("module ") ? modules : packages).emplace_back(rest, value);
  }
  print_section(out, "versions", packages);
  print_section(out, "modules", modules);
}

void print_diff(std::ostream& out, std::ostream& err, const ShownCode& code) {
  const auto record = record_of(code);
  if (!record || !record->repository) {
    err << fmt::format(
        "petlab: attempt {} has no diff: {}\n", code.attempt,
        !record ? "its code was not captured" : base::printable(record->why_no_repository));
    return;
  }
  const protocol::CodeRepository& repository = *record->repository;
  if (repository.clean) {
    err << fmt::format("petlab: attempt {} has no diff: commit {} was clean\n", code.attempt,
                       repository.commit);
    return;
  }
  for (const auto& [path, why] : repository.left_out) {
    out << fmt::format("# {}: left out: {}\n", base::printable(path), why);
  }
  out << repository.diff;
}

}  // namespace petlab::cli
