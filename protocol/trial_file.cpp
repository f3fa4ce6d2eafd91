#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "protocol/trial_directory.h"
#include "protocol/trial_file_text.h"
#include "sweeps/catalog.h"
#include "sweeps/fields.h"

namespace petlab::protocol {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr std::uintmax_t kMaxBytes = 16 << 20;

[[noreturn]] void refuse_key(const std::string& key, const json& found, std::string_view wanted) {
  throw std::invalid_argument(fmt::format("{} is {}, must be {}", key, base::shown(found), wanted));
}

const json& member(const json& object, const std::string& key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) {
    throw std::invalid_argument(fmt::format("{}{} is missing", where, key));
  }
  return *found;
}

std::string text(const json& object, const std::string& key, const std::string& where = "") {
  const json& value = member(object, key, where);
  if (!value.is_string()) refuse_key(where + key, value, "text");
  return value.get<std::string>();
}

std::int64_t whole(const json& object, const std::string& key, std::int64_t least,
                   const std::string& where = "") {
  const json& value = member(object, key, where);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < least) {
    refuse_key(where + key, value, fmt::format("a whole number >= {}", least));
  }
  return value.get<std::int64_t>();
}

const json& group(const json& object, const std::string& key, const std::string& where = "") {
  const json& value = member(object, key, where);
  if (!value.is_object()) refuse_key(where + key, value, "an object");
  return value;
}

void read_digests(const json& digests, TrialFile& content) {
  if (digests.contains("backbone")) content.backbone_digest = text(digests, "backbone", "digests.");
  if (!digests.contains("data")) return;
  for (const auto& [task, digest] : group(digests, "data", "digests.").items()) {
    if (!digest.is_string()) refuse_key("digests.data." + task, digest, "text");
    content.data_digests[task] = digest.get<std::string>();
  }
}

void read_tasks(const json& input, TrialFile& content) {
  if (const auto listed = input.find("tasks"); listed != input.end()) {
    if (!listed->is_array()) refuse_key("tasks", *listed, "a list");
    for (const json& task : *listed) content.tasks.push_back(sweeps::task_from_json(task));
    if (content.tasks.size() != content.config.tasks.size()) {
      throw std::invalid_argument(
          fmt::format("tasks has {} entries, must have one for each of "
                      "the {} tasks of config",
                      content.tasks.size(), content.config.tasks.size()));
    }
    for (std::size_t i = 0; i < content.tasks.size(); ++i) {
      if (content.tasks[i].name != content.config.tasks[i]) {
        throw std::invalid_argument(fmt::format("tasks[{}] is {}, must be {} as in config", i,
                                                base::in_quotes(content.tasks[i].name),
                                                base::in_quotes(content.config.tasks[i])));
      }
    }
    return;
  }
  for (const std::string& name : content.config.tasks) {
    // sweeps::validate() reports unknown names.
    if (const sweeps::TaskDeclaration* task = sweeps::find_task(name))
      content.tasks.push_back(*task);
  }
}

TrialFile parse(const json& input) {
  if (!input.is_object()) refuse_key("the file", input, "an object");
  const std::int64_t version = whole(input, "v", 0);
  if (version != kFormatVersion) {
    throw std::invalid_argument(fmt::format(
        "v is {}, must be {} ({})", version, kFormatVersion,
        version > kFormatVersion ? "written by a newer petlab" : "written by an older petlab"));
  }
  TrialFile content;
  content.trial_id = text(input, "trial");
  content.attempt = whole(input, "attempt", 1);
  content.config = sweeps::trial_config_from_json(group(input, "config"));
  read_tasks(input, content);
  if (sweeps::is_active(*sweeps::find_field("backbone"), content.config)) {
    content.backbone_folder = text(input, "backbone_folder");
  }
  const json& folders = member(input, "data_folders", "");
  if (!folders.is_array()) refuse_key("data_folders", folders, "a list of folders");
  for (const json& folder : folders) {
    if (!folder.is_string()) refuse_key("data_folders", folder, "a list of folders");
    content.data_folders.emplace_back(folder.get<std::string>());
  }
  if (input.contains("digests")) read_digests(group(input, "digests"), content);
  if (input.contains("threads")) content.threads = whole(input, "threads", 1);
  if (input.contains("device")) content.device = text(input, "device");
  if (input.contains("device_uuid")) content.device_uuid = text(input, "device_uuid");
  if (input.contains("device_memory_mib")) {
    content.device_memory_mib = whole(input, "device_memory_mib", 0);
  }
  if (input.contains("resume")) {
    const json& resume = group(input, "resume");
    content.resume =
        Resume{whole(resume, "attempt", 1, "resume."), whole(resume, "step", 0, "resume."),
               whole(resume, "seq", 0, "resume."), text(resume, "checkpoint", "resume.")};
  }
  std::string problems;
  for (const sweeps::Problem& problem : sweeps::validate(content.config, content.tasks)) {
    problems +=
        fmt::format("{}config.{} {}", problems.empty() ? "" : "; ", problem.field, problem.message);
  }
  if (!problems.empty()) throw std::invalid_argument(problems);
  return content;
}

// The text of `tasks`. It is most of the file, and usually the same in all trials of a run, so the
// last one is cached.
const std::string& tasks_text(const std::vector<sweeps::TaskDeclaration>& tasks) {
  thread_local std::vector<sweeps::TaskDeclaration> known;
  thread_local std::string text;
  if (text.empty() || known != tasks) {
    ordered_json out;
    out["tasks"] = ordered_json::array();
    for (const sweeps::TaskDeclaration& task : tasks) out["tasks"].push_back(to_json(task));
    text.clear();
    const std::string object = out.dump(1);
    text = object.substr(1, object.size() - 3) + ",";  // without the braces and their newlines
    known = tasks;
  }
  return text;
}

}  // namespace

std::string trial_file_text(const std::filesystem::path& file, const TrialFile& content) {
  ordered_json out = {
      {"v", kFormatVersion}, {"trial", content.trial_id}, {"attempt", content.attempt}};
  out["config"] = to_json(content.config);
  const std::string first_key =
      content.backbone_folder.empty() ? "data_folders" : "backbone_folder";
  if (!content.backbone_folder.empty()) out[first_key] = content.backbone_folder.string();
  out["data_folders"] = ordered_json::array();
  for (const std::filesystem::path& folder : content.data_folders) {
    out["data_folders"].push_back(folder.string());
  }
  ordered_json digests = ordered_json::object();
  if (!content.backbone_digest.empty()) digests["backbone"] = content.backbone_digest;
  digests["data"] = content.data_digests;
  out["digests"] = std::move(digests);
  out["threads"] = content.threads;
  out["device"] = content.device;
  if (!content.device_uuid.empty()) {
    out["device_uuid"] = content.device_uuid;
    out["device_memory_mib"] = content.device_memory_mib;
  }
  if (content.resume) {
    out["resume"] = {{"attempt", content.resume->attempt},
                     {"step", content.resume->step},
                     {"seq", content.resume->seq},
                     {"checkpoint", content.resume->checkpoint}};
  }
  try {
    std::string json_text = out.dump(1) + "\n";
    // Nested texts contain no raw newlines.
    json_text.insert(json_text.find(fmt::format("\n \"{}\":", first_key)),
                     tasks_text(content.tasks));
    return json_text;
  } catch (const json::exception& error) {  // a path or text is not UTF-8
    throw base::Error(fmt::format("{}: cannot be written: {}", file.string(), error.what()));
  }
}

void write_trial_file(const std::filesystem::path& file, const TrialFile& content) {
  base::write_file_atomically(file, trial_file_text(file, content));
}

TrialFile read_trial_file(const std::filesystem::path& file) {
  const std::string bytes = base::read_file(file, kMaxBytes);
  try {
    return parse(base::parse_shallow_json(bytes, file.string()));
  } catch (const json::exception& error) {
    throw base::Error(fmt::format("{}: found no JSON, expected a trial: {}", file.string(),
                                  base::json_problem(error)));
  } catch (const std::invalid_argument& error) {
    throw base::Error(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace petlab::protocol
