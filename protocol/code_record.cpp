#include "protocol/code_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "protocol/trial_directory.h"

namespace petlab::protocol {
namespace {

using nlohmann::ordered_json;

constexpr int kCodeFormat = 1;
// Far more than a diff of 1 MiB needs when JSON escapes it.
constexpr std::uintmax_t kMostCodeBytes = std::uintmax_t{16} << 20;

}  // namespace

std::string to_text(const CodeRecord& record) {
  ordered_json json = {{"v", kCodeFormat}, {"command", record.command}};
  json["files"] = ordered_json::array();
  for (const CodeFile& file : record.files) {
    json["files"].push_back({{"path", file.path}, {"digest", file.digest}});
  }
  if (const auto& repository = record.repository) {
    json["repository"] = {{"folder", repository->folder}, {"commit", repository->commit},
                          {"branch", repository->branch}, {"clean", repository->clean},
                          {"tree", repository->tree},     {"changed", repository->changed},
                          {"diff", repository->diff},     {"left_out", repository->left_out}};
  } else {
    json["why_no_repository"] = record.why_no_repository;
  }
  json["environment"] = record.environment;
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::filesystem::path code_record_file(const std::filesystem::path& runs,
                                       const std::string& digest) {
  return sweep_text_file(runs, digest).replace_extension(".code");
}

std::string write_code_record(const std::filesystem::path& runs, const CodeRecord& record) {
  const std::string text = to_text(record);
  std::string digest = base::sha256(text);
  const std::filesystem::path file = code_record_file(runs, digest);
  std::error_code error;
  if (std::filesystem::exists(file, error)) return digest;
  std::filesystem::create_directories(file.parent_path(), error);
  base::write_file_atomically(file, text);
  return digest;
}

CodeRecord read_code_record(const std::filesystem::path& runs, const std::string& digest) {
  const std::filesystem::path file = code_record_file(runs, digest);
  const std::string text = base::read_file(file, kMostCodeBytes);
  if (const std::string found = base::sha256(text); found != digest) {
    throw base::Error(fmt::format("{}: its content has digest {}, must be the one in its name",
                                  file.string(), found));
  }
  try {
    const ordered_json json = base::parse_shallow_ordered_json(text, file.string());
    if (json.at("v") != kCodeFormat) {
      throw base::Error(fmt::format("{}: v is {}, must be {}: written by a newer petlab",
                                    file.string(), json.at("v").dump(), kCodeFormat));
    }
    CodeRecord record;
    json.at("command").get_to(record.command);
    for (const ordered_json& one : json.at("files")) {
      record.files.push_back(
          {one.at("path").get<std::string>(), one.at("digest").get<std::string>()});
    }
    if (const auto found = json.find("repository"); found != json.end()) {
      CodeRepository& repository = record.repository.emplace();
      found->at("folder").get_to(repository.folder);
      found->at("commit").get_to(repository.commit);
      found->at("branch").get_to(repository.branch);
      found->at("clean").get_to(repository.clean);
      found->at("tree").get_to(repository.tree);
      found->at("changed").get_to(repository.changed);
      found->at("diff").get_to(repository.diff);
      found->at("left_out").get_to(repository.left_out);
    } else {
      json.at("why_no_repository").get_to(record.why_no_repository);
    }
    json.at("environment").get_to(record.environment);
    return record;
  } catch (const nlohmann::json::exception& error) {
    throw base::Error(fmt::format("{}: found something else than a record of code: {}",
                                  file.string(), base::json_problem(error)));
  }
}

}  // namespace petlab::protocol
