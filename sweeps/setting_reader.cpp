#include "sweeps/setting_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/condition_text.h"
#include "sweeps/error.h"
#include "sweeps/field_problems.h"
#include "sweeps/hub_cache.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

constexpr std::string_view kUserNumberWanted =
    "a whole number from -9223372036854775808 to 9223372036854775807, or a quoted text";
constexpr int kMostPriority = 1'000'000;
constexpr int kMostGpus = 1024;
constexpr std::string_view kTaskWanted = "the name of a task, or of a .yaml file that declares one";

bool is_group(const std::string& key) {
  return key == "user" || key == "resources" || is_group_of_fields(key);
}

bool holds_nul(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos;
}

}  // namespace

bool is_too_large(const base::YamlNode& node, const json& value) {
  if (!value.is_number() || node.text.find_first_not_of("+-0123456789") != std::string::npos) {
    return false;
  }
  return value.is_number_float() ||
         (value.is_number_unsigned() &&
          value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()});
}

bool SettingReader::find_target(const std::string& where, const std::string& name, int line,
                                Setting& setting) {
  setting.line = line;
  setting.name = name;
  if (name == "task" || name == "tasks") {
    setting.target = Target::tasks;
    return true;
  }
  if (name == "priority") {
    setting.target = Target::priority;
    return true;
  }
  if (name == "resources.gpus") {
    setting.target = Target::gpus;
    return true;
  }
  if (name.starts_with("user.")) {
    setting.target = Target::user;
    setting.name = name.substr(5);
    return true;
  }
  setting.field = find_field(name);
  if (setting.field != nullptr && is_field_of(*setting.field, draft_.catalog)) return true;
  const std::string near = nearest_field(name, draft_.catalog);
  const std::string wanted = draft_.catalog.empty()
                                 ? "a field of a trial"
                                 : fmt::format("a field of worker {}", draft_.catalog);
  problems_.add(line, where, base::shown(json(name)),
                near.empty() ? wanted : fmt::format("{} (nearest: {})", wanted, near));
  return false;
}

bool SettingReader::read_value(Setting& setting, const base::YamlNode& node, bool may_match) {
  const bool good = read_good_value(setting, node, may_match);
  // Invalid operands of conditions do not affect the trial's values.
  if (!good && may_match)
    draft_.refused.insert(setting.target == Target::tasks ? "task" : setting.name);
  return good;
}

bool SettingReader::read_good_value(Setting& setting, const base::YamlNode& node, bool may_match) {
  if (node.is_map() && node.find("match_storage_of") != nullptr) {
    return read_match(setting, node, may_match);
  }
  switch (setting.target) {
    case Target::tasks:
      return read_tasks(setting, node);
    case Target::user:
      if (node.is_map() || node.is_sequence()) {
        problems_.add(node.line, "user." + setting.name, base::shown(node),
                      "text, a number, true, false or null (user is flat)");
        return false;
      }
      setting.value = to_json(node);
      if (is_too_large(node, std::get<json>(setting.value))) {
        problems_.add(node.line, "user." + setting.name, base::shown(node), kUserNumberWanted);
        return false;
      }
      // SQLite's JSON functions end a text at a NUL.
      if (setting.name.find('\0') != std::string::npos ||
          holds_nul(std::get<json>(setting.value))) {
        problems_.add(node.line, "user." + setting.name.substr(0, setting.name.find('\0')),
                      "a NUL byte", "text without one");
        return false;
      }
      return true;
    case Target::priority:
      return read_whole(setting, node, -kMostPriority, kMostPriority);
    case Target::gpus:
      return read_whole(setting, node, 1, kMostGpus);
    case Target::field:
    case Target::variant:
      break;
  }
  json value = to_json(node);
  TrialConfig scratch;
  if (setting.name == "module.kind" && value.is_string() &&
      find_module(value.get_ref<const std::string&>(), draft_.catalog) == nullptr) {
    problems_.add(node.line, setting.name, base::shown(node),
                  kind_problem(node.text, draft_.catalog).wanted);
    return false;
  }
  scratch.catalog = draft_.catalog;
  if (value.is_null() || !setting.field->set(scratch, value) || !setting.field->in_range(scratch) ||
      (setting.field->type == FieldType::integer && is_too_large(node, value))) {
    problems_.add(node.line, setting.name, base::shown(node), setting.field->wanted);
    return false;
  }
  setting.value = std::move(value);
  return setting.name != "backbone" || read_backbone(setting, node);
}

bool SettingReader::read_whole(Setting& setting, const base::YamlNode& node, int least, int most) {
  const json value = to_json(node);
  if (!value.is_number_integer() || value.get<double>() < least || value.get<double>() > most) {
    problems_.add(node.line, setting.name, base::shown(node),
                  fmt::format("a whole number from {} to {}", least, most));
    return false;
  }
  setting.value = value;
  return true;
}

bool SettingReader::read_match(Setting& setting, const base::YamlNode& node, bool may_match) {
  const auto rows = modules();
  const bool is_size = setting.name == "module.sparsity_ratio" ||
                       std::any_of(rows.begin(), rows.end(), [&](const ModuleRow& row) {
                         return row.size_field() == setting.name;
                       });
  if (!may_match || setting.target != Target::field || !is_size) {
    problems_.add(
        node.line, setting.name, "match_storage_of",
        may_match && setting.field != nullptr ? setting.field->wanted : "a value to compare with");
    return false;
  }
  const base::YamlNode& target = *node.find("match_storage_of");
  if (node.items.size() != 1 || !target.is_scalar()) {
    problems_.add(node.line, setting.name,
                  node.items.size() != 1 ? "match_storage_of with other keys" : base::shown(target),
                  "{match_storage_of: VARIANT}");
    return false;
  }
  setting.value = MatchStorage{target.text};
  matches_.push_back({target.line, setting.name, target.text});
  return true;
}

bool SettingReader::read_tasks(Setting& setting, const base::YamlNode& node) {
  json names = json::array();
  if (setting.name == "task") {
    if (!read_task(node, names)) return false;
  } else if (!node.is_sequence() || node.items.empty()) {
    problems_.add(node.line, "tasks", node.is_sequence() ? "an empty list" : base::shown(node),
                  "a list of tasks");
    return false;
  } else {
    for (const base::YamlNode& item : node.items) {
      if (!read_task(item, names)) return false;
    }
  }
  setting.value = std::move(names);
  return true;
}

bool SettingReader::read_task(const base::YamlNode& node, json& names) {
  const json value = to_json(node);
  if (!value.is_string()) {
    problems_.add(node.line, "task", base::shown(node), kTaskWanted);
    return false;
  }
  const auto name = value.get<std::string>();
  if (name.ends_with(".yaml") || name.ends_with(".yml")) return declare(node.line, name, names);
  if (find_task(name) == nullptr && !draft_.declared.contains(name)) {
    std::vector<std::string> known;
    for (const TaskDeclaration& task : tasks()) known.push_back(task.name);
    for (const auto& [other, task] : draft_.declared) known.push_back(other);
    problems_.add(node.line, "task", base::shown(node), with_nearest(kTaskWanted, name, known));
    return false;
  }
  names.push_back(name);
  return true;
}

bool SettingReader::declare(int line, const std::string& path, json& names) {
  const auto known = declared_by_path_.find(path);
  if (known != declared_by_path_.end()) {
    if (known->second.empty()) return false;  // reported when it was read
    names.push_back(known->second);
    return true;
  }
  std::string& name = declared_by_path_[path];
  try {
    TaskDeclaration task =
        load_task((std::filesystem::absolute(file_).parent_path() / path).lexically_normal());
    const auto same = draft_.declared.find(task.name);
    if (same != draft_.declared.end() &&
        (same->second.folder != task.folder || task_digest(same->second) != task_digest(task))) {
      problems_.add(line, "task", fmt::format("{} for the task {}", path, task.name),
                    "one declaration of it");
      return false;
    }
    name = task.name;
    draft_.declared[name] = std::move(task);
    names.push_back(name);
    return true;
  } catch (const base::FileProblemsError& error) {
    for (const std::string& problem : error.problems()) problems_.add_foreign(line, problem);
  } catch (const Error& error) {
    problems_.add(line, "task", fmt::format("no declaration ({})", error.what()), kTaskWanted);
  }
  return false;
}

// Paths are made absolute, so that the configuration does not depend on the current folder. A
// possible model name on the hub is one unless such a folder exists.
bool SettingReader::read_backbone(Setting& setting, const base::YamlNode& node) {
  const auto written = std::get<json>(setting.value).get<std::string>();
  const std::filesystem::path here = std::filesystem::absolute(file_).parent_path();
  std::string name = written;
  if (written.find('/') != std::string::npos) {
    std::string path = (here / written).lexically_normal().string();
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    std::error_code unreadable;
    if (!parse_hub_name(written) || std::filesystem::is_directory(path, unreadable)) name = path;
  }
  setting.value = name;
  if (draft_.backbone_digests.contains(name)) return true;
  if (bad_backbones_.contains(name)) return false;
  try {
    const std::filesystem::path folder = backbone_folder(locations_, name, here);
    read_shape(name, folder);
    const WorkerCatalog* const catalog = find_catalog(draft_.catalog);
    draft_.backbone_digests[name] =
        backbone_digest(folder, digests_,
                        catalog == nullptr ? std::vector<std::string>() : catalog->backbone_files);
    draft_.backbone_folders[name] = folder;
    return true;
  } catch (const Error& error) {
    bad_backbones_.insert(name);
    problems_.add_text(node.line, error.what());
  }
  return false;
}

// A worker's catalog says which model types it can train; their shapes may be unknown here.
void SettingReader::read_shape(const std::string& name, const std::filesystem::path& folder) {
  const WorkerCatalog* const catalog = find_catalog(draft_.catalog);
  if (catalog == nullptr) {
    draft_.backbone_shapes[name] = read_backbone_shape(folder);
    return;
  }
  const std::string type = read_model_type(folder);
  const auto& types = catalog->backbones;
  if (types && std::find(types->begin(), types->end(), type) == types->end()) {
    throw Error(fmt::format("{}: model_type: found {}, expected {} for worker {}",
                            (folder / "config.json").string(), base::in_quotes(type),
                            fmt::join(*types, ", "), catalog->id));
  }
  if (!catalog->kinds.empty()) {
    draft_.backbone_shapes[name] = read_backbone_numbers(folder);
    return;
  }
  try {
    draft_.backbone_shapes[name] = read_backbone_shape(folder);
  } catch (const Error&) {
    // Then the storage of the built-in kinds is as the worker reports it.
  }
}

void SettingReader::walk(const std::string& where, const base::YamlNode& node,
                         const OnKey& on_key) {
  std::map<std::string, int> seen;
  const auto visit = [&](const std::string& name, int line, const base::YamlNode& value) {
    // task and tasks are two names of one field.
    const auto [known, is_new] = seen.emplace(name == "tasks" ? "task" : name, line);
    if (!is_new) {
      problems_.add(line, where, fmt::format("{} twice", base::shown(json(name))),
                    fmt::format("it once (first in line {})", known->second));
      return;
    }
    on_key(name, line, value);
  };
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto& [key, line] = node.keys[i];
    const base::YamlNode& value = node.items[i];
    if (!is_group(key)) {
      visit(key, line, value);
    } else if (value.is_map()) {
      for (std::size_t j = 0; j < value.items.size(); ++j) {
        visit(key + "." + value.keys[j].first, value.keys[j].second, value.items[j]);
      }
    } else if (!value.is_null()) {
      problems_.add(value.line, where + "." + key, base::shown(value), "a group of keys");
    }
  }
}

std::vector<Setting> SettingReader::settings(const std::string& where, const base::YamlNode& node) {
  std::vector<Setting> list;
  walk(where, node, [&](const std::string& name, int line, const base::YamlNode& value) {
    Setting setting;
    if (find_target(where, name, line, setting) && read_value(setting, value, true)) {
      list.push_back(std::move(setting));
    }
  });
  return list;
}

base::YamlNode SettingReader::with_ranges(const std::string& name, const base::YamlNode& value) {
  const Field* const field = find_field(name);
  if (field == nullptr || field->type != FieldType::integer) return value;
  base::YamlNode list;
  list.kind = base::YamlNode::Kind::sequence;
  list.line = value.line;
  bool any = false;
  const auto add = [&](const base::YamlNode& item) {
    std::int64_t first = 0;
    std::int64_t last = 0;
    try {
      if (!item.is_scalar() || !item.plain || !parse_range(item.text, first, last)) {
        list.items.push_back(item);
        return;
      }
    } catch (const std::invalid_argument& error) {
      problems_.add(item.line, name, error.what(), "fewer");
      draft_.refused.insert(name);
      return;
    }
    any = true;
    if (last - first >= kMaxTrials - static_cast<std::int64_t>(list.items.size())) {
      problems_.add(item.line, name, fmt::format("more than {} values", kMaxTrials), "fewer");
      draft_.refused.insert(name);
      return;
    }
    for (std::int64_t each = first; each <= last; ++each) {
      base::YamlNode& one = list.items.emplace_back(item);
      one.text = std::to_string(each);
    }
  };
  if (value.is_sequence()) {
    for (const base::YamlNode& item : value.items) add(item);
  } else {
    add(value);
  }
  return any ? list : value;
}

std::vector<ListedSetting> SettingReader::list(const std::string& where, const std::string& name,
                                               int line, const base::YamlNode& value) {
  std::vector<ListedSetting> list;
  Setting setting;
  if (!find_target(where, name, line, setting)) return list;
  if (!value.is_sequence() || value.items.empty()) {
    problems_.add(value.line, name, value.is_sequence() ? "an empty list" : base::shown(value),
                  "a list of values");
    draft_.refused.insert(name);
    return list;
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    Setting one = setting;
    if (!read_value(one, value.items[i], true)) continue;
    list.push_back({i, std::move(one)});
  }
  return list;
}

}  // namespace petlab::sweeps
