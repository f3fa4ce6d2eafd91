#include "sweeps/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/sha256.h"
#include "base/shown.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"
#include "sweeps/identity.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class Enum, std::size_t N>
using Words = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Words<TaskKind, 3> kKinds{{{TaskKind::classification, "classification"},
                                     {TaskKind::regression, "regression"},
                                     {TaskKind::text, "text"}}};
constexpr Words<TargetRule, 4> kTargets{{{TargetRule::label, "label"},
                                         {TargetRule::sign, "sign"},
                                         {TargetRule::score, "score"},
                                         {TargetRule::text, "text"}}};
constexpr Words<FileFormat, 4> kFormats{{{FileFormat::tsv, "tsv"},
                                         {FileFormat::csv, "csv"},
                                         {FileFormat::jsonl, "jsonl"},
                                         {FileFormat::aligned, "aligned"}}};
constexpr Words<SplitRule, 4> kSplits{{{SplitRule::given, "given"},
                                       {SplitRule::glue_small, "glue_small"},
                                       {SplitRule::glue_large, "glue_large"},
                                       {SplitRule::one_file, "one_file"}}};

template <class Enum, std::size_t N>
std::string_view word_of(const Words<Enum, N>& words, Enum value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return "";
}

// Reads the keys of a JSON object one by one; finish() rejects unread keys.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse("", object, "an object");
  }

  void text(const char* key, std::string& target) {
    if (const json* value = find(key)) target = as_text(key, *value);
  }
  void texts(const char* key, std::vector<std::string>& target) {
    const json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) refuse(key, *value, "a list of text");
    target.clear();
    for (const json& item : *value) target.push_back(as_text(key, item));
  }
  void flag(const char* key, bool& target) {
    const json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) refuse(key, *value, "true or false");
    target = value->get<bool>();
  }
  void number(const char* key, std::optional<double>& target) {
    const json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_number()) refuse(key, *value, "a number");
    target = value->get<double>();
  }
  template <class Enum, std::size_t N>
  void word(const char* key, const Words<Enum, N>& words, Enum& target) {
    const json* const value = find(key);
    if (value == nullptr) return;
    const std::string found = as_text(key, *value);
    std::string wanted;
    for (const auto& [known, word] : words) {
      if (word == found) {
        target = known;
        return;
      }
      wanted += fmt::format("{}{}", wanted.empty() ? "one of " : ", ", word);
    }
    refuse(key, *value, wanted);
  }
  const json* find(const char* key) {
    asked_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (!asked_.contains(key)) {
        throw std::invalid_argument(fmt::format("{}.{} is not a key of a task", where_, key));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const json& found, std::string_view wanted) {
    throw std::invalid_argument(fmt::format("{}{}{} is {}, must be {}", where_,
                                            key.empty() ? "" : ".", key, base::shown(found),
                                            wanted));
  }
  std::string as_text(const char* key, const json& value) {
    if (!value.is_string()) refuse(key, value, "text");
    return value.get<std::string>();
  }

  const json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

ordered_json layout_to_json(const TaskLayout& layout) {
  ordered_json out = {{"format", to_string(layout.format)},
                      {"header", layout.header},
                      {"train", layout.train},
                      {"validation", layout.validation},
                      {"test", layout.test},
                      {"text_columns", layout.text_columns},
                      {"target_column", layout.target_column},
                      {"skip_short_rows", layout.skip_short_rows}};
  // Workers that do not know the key reject it, so only tasks that need it have it.
  if (layout.ignore_extra_columns) out["ignore_extra_columns"] = true;
  return out;
}

TaskLayout layout_from_json(const json& input, const std::string& where) {
  TaskLayout layout;
  Reader reader(input, where);
  reader.word("format", kFormats, layout.format);
  reader.flag("header", layout.header);
  reader.text("train", layout.train);
  reader.text("validation", layout.validation);
  reader.text("test", layout.test);
  reader.texts("text_columns", layout.text_columns);
  reader.text("target_column", layout.target_column);
  reader.flag("skip_short_rows", layout.skip_short_rows);
  reader.flag("ignore_extra_columns", layout.ignore_extra_columns);
  reader.finish();
  return layout;
}

// Drops empty and false members, so that new keys with such defaults change no digest.
void drop_empty(json& object) {
  for (auto it = object.begin(); it != object.end();) {
    json& value = it.value();
    if (value.is_object()) drop_empty(value);
    if (value.is_array()) {
      for (json& item : value) {
        if (item.is_object()) drop_empty(item);
      }
    }
    const bool empty = value == false || value == "" || (value.is_structured() && value.empty());
    it = empty ? object.erase(it) : std::next(it);
  }
}

bool is_whole_number(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "1" for a JSON number 1, 1.0 or 1e0; other numbers unchanged.
std::string as_whole_number(std::string_view text) {
  constexpr double kMost = 1e15;  // integers up to this are exact
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() &&
                     std::abs(number) <= kMost && number == std::trunc(number);
  return whole ? std::to_string(static_cast<std::int64_t>(number)) : std::string(text);
}

}  // namespace

std::vector<std::string> file_parts(const TaskLayout& layout, const std::string& name) {
  if (layout.format != FileFormat::aligned) return {name};
  std::vector<std::string> parts;
  for (const std::string& column : layout.text_columns) parts.push_back(name + "." + column);
  parts.push_back(name + "." + layout.target_column);
  return parts;
}

std::string_view to_string(TaskKind kind) { return word_of(kKinds, kind); }
std::string_view to_string(TargetRule rule) { return word_of(kTargets, rule); }
std::string_view to_string(FileFormat format) { return word_of(kFormats, format); }
std::string_view to_string(SplitRule rule) { return word_of(kSplits, rule); }

std::optional<std::size_t> class_of(const TaskDeclaration& task, std::string_view text,
                                    bool is_number) {
  const std::vector<std::string>& classes = task.classes;
  std::string whole;
  if (is_number) text = whole = as_whole_number(text);
  if (is_number && std::none_of(classes.begin(), classes.end(), is_whole_number)) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (text == std::to_string(i)) return i;
    }
    return std::nullopt;
  }
  const auto found = std::find(classes.begin(), classes.end(), text);
  if (found == classes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - classes.begin());
}

std::string task_digest(const TaskDeclaration& task) {
  json identity = json(to_json(task));  // sorted keys
  for (const char* const key : {"help", "source", "folder"}) identity.erase(key);
  if (!task.layouts.empty()) identity["layouts"] = json::array({identity["layouts"].at(0)});
  drop_empty(identity);
  return base::sha256(identity.dump());
}

ordered_json to_json(const TaskDeclaration& task) {
  ordered_json out = {{"name", task.name},
                      {"help", task.help},
                      {"source", task.source},
                      {"kind", to_string(task.kind)},
                      {"target", to_string(task.target)},
                      {"classes", task.classes}};
  if (task.score_min) out["score_min"] = *task.score_min;
  if (task.score_max) out["score_max"] = *task.score_max;
  out["split"] = to_string(task.split);
  out["layouts"] = ordered_json::array();
  for (const TaskLayout& layout : task.layouts) out["layouts"].push_back(layout_to_json(layout));
  out["metrics"] = task.metrics;
  out["select_by"] = task.select_by;
  out["text_to_text"] = {{"source", task.text_to_text.source},
                         {"targets", task.text_to_text.targets}};
  out["folder"] = task.folder.string();
  return out;
}

TaskDeclaration task_from_json(const json& input) {
  TaskDeclaration task;
  Reader reader(input, "task");
  reader.text("name", task.name);
  reader.text("help", task.help);
  reader.text("source", task.source);
  reader.word("kind", kKinds, task.kind);
  reader.word("target", kTargets, task.target);
  reader.texts("classes", task.classes);
  reader.number("score_min", task.score_min);
  reader.number("score_max", task.score_max);
  reader.word("split", kSplits, task.split);
  if (const json* const layouts = reader.find("layouts"); layouts != nullptr) {
    if (!layouts->is_array()) {
      throw std::invalid_argument(
          fmt::format("task.layouts is {}, must be a list", base::shown(*layouts)));
    }
    for (std::size_t i = 0; i < layouts->size(); ++i) {
      task.layouts.push_back(layout_from_json((*layouts)[i], fmt::format("task.layouts[{}]", i)));
    }
  }
  reader.texts("metrics", task.metrics);
  reader.texts("select_by", task.select_by);
  if (const json* const text = reader.find("text_to_text"); text != nullptr) {
    Reader inner(*text, "task.text_to_text");
    inner.text("source", task.text_to_text.source);
    inner.texts("targets", task.text_to_text.targets);
    inner.finish();
  }
  std::string folder;
  reader.text("folder", folder);
  task.folder = folder;
  reader.finish();
  if (task.name.empty()) throw std::invalid_argument("task.name is missing, must be text");
  if (!input.contains("layouts")) {
    throw std::invalid_argument("task.layouts is missing, must be a list");
  }
  return task;
}

TaskFiles find_task_files(const TaskDeclaration& task,
                          std::span<const std::filesystem::path> data_folders) {
  if (task.layouts.empty()) {
    throw Error(fmt::format("task {}: found no files, expected some: its worker alone has its data",
                            base::in_quotes(task.name)));
  }
  std::vector<std::filesystem::path> folders;
  if (!task.folder.empty()) folders.push_back(task.folder);
  folders.insert(folders.end(), data_folders.begin(), data_folders.end());
  const auto is_there = [](const std::filesystem::path& file) {
    std::error_code unreadable;
    return std::filesystem::is_regular_file(file, unreadable);
  };
  const auto find = [&](const TaskLayout& layout, const std::string& name) {
    std::filesystem::path found;
    if (name.empty()) return found;
    const std::vector<std::string> parts = file_parts(layout, name);
    for (const std::filesystem::path& folder : folders) {
      const bool all = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
        return is_there(folder / part);
      });
      if (all) return folder / name;
    }
    return found;
  };
  // For a name with several files, the first that is missing from all folders.
  const auto lacking_part = [&](const TaskLayout& layout, const std::string& name) {
    const std::vector<std::string> parts = file_parts(layout, name);
    for (const std::string& part : parts) {
      if (std::none_of(folders.begin(), folders.end(),
                       [&](const auto& folder) { return is_there(folder / part); })) {
        return part;
      }
    }
    return parts.front();
  };
  std::string missing;  // from the layout with the fewest missing files, the first of equals
  std::size_t fewest = 4;
  for (std::size_t i = 0; i < task.layouts.size(); ++i) {
    const TaskLayout& layout = task.layouts[i];
    const TaskFiles files{i, find(layout, layout.train), find(layout, layout.validation),
                          find(layout, layout.test)};
    std::size_t lacking = 0;
    std::string first_lacking;
    for (const auto& [name, path] :
         {std::pair(&layout.train, &files.train), std::pair(&layout.validation, &files.validation),
          std::pair(&layout.test, &files.test)}) {
      if (name->empty() || !path->empty()) continue;
      if (lacking++ == 0) first_lacking = lacking_part(layout, *name);
    }
    if (lacking == 0) return files;
    if (lacking < fewest) {
      fewest = lacking;
      missing = first_lacking;
    }
  }
  std::string searched;
  for (const std::filesystem::path& folder : folders) {
    searched += fmt::format("{}{}", searched.empty() ? "" : ", ", folder.string());
  }
  throw Error(
      fmt::format("task {}: {} is in none of the folders {}{}{} (set PETLAB_DATA to add a folder)",
                  task.name, missing, searched.empty() ? "(none are set)" : searched,
                  task.source.empty() ? "" : "; it comes from ", task.source));
}

}  // namespace petlab::sweeps
