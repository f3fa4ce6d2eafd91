#include "sweeps/worker_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/shallow_json.h"
#include "metrics/metric_table.h"
#include "sweeps/catalog_keys.h"
#include "sweeps/vocabulary.h"

namespace petlab::sweeps {
namespace {

using internal::CatalogKeys;
using internal::check_name;
using internal::check_uses;
using internal::read_defaults;
using internal::refuse_catalog;
using nlohmann::json;

// Groups and names that mean something else in a sweep file or a configuration.
constexpr std::string_view kReserved[] = {"user",    "task",     "tasks",   "priority",
                                          "variant", "backbone", "catalog", "resources"};

bool is_word(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

FieldType type_named(const std::string& where, const std::string& text) {
  if (text == "text") return FieldType::text;
  if (text == "integer") return FieldType::integer;
  if (text == "number") return FieldType::number;
  if (text == "boolean") return FieldType::boolean;
  refuse_catalog(where, json(text), "text, integer, number or boolean");
}

std::string wanted_text(const DeclaredField& field) {
  if (field.type == FieldType::boolean) return "true or false";
  if (!field.values.empty()) return fmt::format("one of {}", fmt::join(field.values, ", "));
  if (field.type == FieldType::text) return "text";
  std::string text = field.type == FieldType::integer ? "a whole number" : "a number";
  if (field.least && field.most) {
    return text + fmt::format(" from {} to {}", field.least->dump(), field.most->dump());
  }
  if (field.least) return text + " >= " + field.least->dump();
  if (field.most) return text + " <= " + field.most->dump();
  return text;
}

DeclaredField read_field(const std::string& name, const json& object) {
  const std::string where = "fields." + name;
  CatalogKeys keys(where, object);
  DeclaredField field;
  field.name = name;
  const std::size_t dot = name.find('.');
  const std::string group = name.substr(0, dot);
  const bool is_reserved =
      std::find(std::begin(kReserved), std::end(kReserved), group) != std::end(kReserved);
  if (dot == std::string::npos || is_reserved || !is_word(group) ||
      !is_word(name.substr(dot + 1))) {
    refuse_catalog(
        where, json(name),
        "GROUP.NAME of lower-case letters, digits and _, in a group other than user and tasks");
  }
  field.column = name;
  std::replace(field.column.begin(), field.column.end(), '.', '_');
  for (const Field& known : internal::builtin_fields()) {
    if (known.column == field.column)
      refuse_catalog(where, json(name), "a name that petlab has not");
  }
  field.help = keys.text("help", "");
  field.type = type_named(where + ".type", keys.text("type", "text"));
  field.values = keys.texts("values");
  field.kinds = keys.texts("kinds");
  const bool is_number = field.type == FieldType::integer || field.type == FieldType::number;
  for (const auto& [key, bound] : {std::pair("min", &field.least), std::pair("max", &field.most)}) {
    const json* const found = keys.find(key);
    if (found == nullptr) continue;
    if (!is_number || !field.has_type(*found)) {
      refuse_catalog(keys.name(key), *found, "a number of the field's type");
    }
    *bound = *found;
  }
  if (!field.values.empty() && field.type != FieldType::text) {
    refuse_catalog(keys.name("values"), json(field.values),
                   "no values for a field that is not a text");
  }
  field.wanted = wanted_text(field);
  if (const json* const usual = keys.find("default")) {
    if (!field.has_type(*usual) || !field.in_range(*usual)) {
      refuse_catalog(keys.name("default"), *usual, field.wanted);
    }
    field.usual = *usual;
  }
  keys.refuse_others();
  return field;
}

std::vector<std::string> fields_outside_module() {
  std::vector<std::string> all;
  for (const Field& field : internal::builtin_fields()) {
    const bool of_t5 = field.use == FieldUse::t5 || field.use == FieldUse::beams;
    if (!field.name.starts_with("module.") && field.name != "seed" && field.name != "backbone" &&
        !of_t5) {
      all.emplace_back(field.name);
    }
  }
  return all;
}

void read_metrics(const json& entries, WorkerCatalog& catalog) {
  for (const auto& [name, value] : entries.items()) {
    const std::string where = "metrics." + name;
    check_name(where, name);
    CatalogKeys keys(where, value);
    const std::string better = keys.text("better", "higher");
    if (better != "higher" && better != "lower") {
      refuse_catalog(where + ".better", json(better), "higher or lower");
    }
    keys.refuse_others();
    catalog.metrics.push_back({name, better == "higher"});
  }
}

void check_metrics(const std::string& where, const std::vector<std::string>& names,
                   const WorkerCatalog& catalog) {
  std::vector<std::string> known;
  for (const DeclaredMetric& metric : catalog.metrics) known.push_back(metric.name);
  for (const metrics::MetricRow& row : metrics::metric_table()) known.emplace_back(row.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse_catalog(where, json(name),
                   with_nearest("a metric of petlab or of the catalog", name, known));
  }
}

void read_tasks(const json& entries, WorkerCatalog& catalog) {
  for (const auto& [name, value] : entries.items()) {
    const std::string where = "tasks." + name;
    check_name(where, name);
    if (find_task(name) != nullptr) refuse_catalog(where, json(name), "a name of no built-in task");
    CatalogKeys keys(where, value);
    TaskDeclaration task;
    task.name = name;
    task.kind = TaskKind::text;
    task.target = TargetRule::text;
    task.help = keys.text("help", "");
    task.metrics = keys.texts("metrics");
    if (task.metrics.empty())
      refuse_catalog(where + ".metrics", json(task.metrics), "at least one metric");
    check_metrics(where + ".metrics", task.metrics, catalog);
    task.select_by = keys.texts("select_by");
    if (task.select_by.empty()) task.select_by = {task.metrics.front()};
    for (const std::string& metric : task.select_by) {
      if (std::find(task.metrics.begin(), task.metrics.end(), metric) == task.metrics.end()) {
        refuse_catalog(where + ".select_by", json(metric), "one of the task's metrics");
      }
    }
    keys.refuse_others();
    catalog.tasks.push_back(std::move(task));
  }
}

}  // namespace

bool DeclaredField::has_type(const json& value) const {
  switch (type) {
    case FieldType::text:
      return value.is_string();
    case FieldType::integer:
      return value.is_number_integer() &&
             (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
    case FieldType::number:
      return value.is_number();
    case FieldType::boolean:
      break;
  }
  return value.is_boolean();
}

bool DeclaredField::in_range(const json& value) const {
  if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end()) {
    return false;
  }
  return (!least || value >= *least) && (!most || value <= *most);
}

namespace {

WorkerCatalog parse_catalog(const nlohmann::ordered_json& ordered, const std::string& worker,
                            bool own) {
  const json object = ordered;
  CatalogKeys keys("", object);
  WorkerCatalog catalog;
  catalog.name = keys.text("name", worker);
  check_name("name", catalog.name);
  if (const json* const version = keys.find("version")) {
    const bool good = version->is_number_integer() && *version >= 1 && *version <= 1'000'000'000;
    if (!good) refuse_catalog("version", *version, "a whole number from 1 to 1000000000");
    catalog.version = version->get<std::int64_t>();
  }
  catalog.id = fmt::format("{} {}", catalog.name, catalog.version);
  if (const json* const backbones = keys.find("backbones"); backbones && !backbones->is_null()) {
    catalog.backbones = keys.texts("backbones");
  }
  catalog.backbone_files = keys.texts("backbone_files");
  for (const std::string& name : catalog.backbone_files) {
    if (name.empty() || name.find('/') != std::string::npos) {
      refuse_catalog("backbone_files", json(name), "a pattern of names of files, such as *.json");
    }
  }
  catalog.uses = keys.find("uses") != nullptr ? keys.texts("uses") : fields_outside_module();
  check_uses("uses", catalog.uses, false);
  catalog.defaults = read_defaults("", keys.entries("defaults"));
  const json fields = keys.entries("fields");
  for (const auto& [name, field] : fields.items()) {
    catalog.fields.push_back(read_field(name, field));
  }
  keys.entries("kinds");
  internal::read_kinds(ordered.value("kinds", nlohmann::ordered_json::object()), catalog, own);
  read_metrics(keys.entries("metrics"), catalog);
  read_tasks(keys.entries("tasks"), catalog);
  keys.refuse_others();
  json kept = object;
  kept["name"] = catalog.name;
  try {
    catalog.text = json{{"catalog", std::move(kept)}}.dump() + "\n";
  } catch (const json::exception& error) {
    throw std::invalid_argument(fmt::format("catalog: {}", error.what()));
  }
  return catalog;
}

}  // namespace

WorkerCatalog parse_worker_catalog(const nlohmann::ordered_json& object,
                                   const std::string& worker) {
  return parse_catalog(object, worker, false);
}

WorkerCatalog internal::parse_builtin_catalog(const nlohmann::ordered_json& object) {
  return parse_catalog(object, "", true);
}

WorkerCatalog parse_worker_catalog(std::string_view text) {
  const json object = base::shallow_json_or_none(text);
  if (!object.is_object() || !object.contains("catalog")) {
    throw std::invalid_argument("found no catalog, expected a JSON object with the key catalog");
  }
  return parse_worker_catalog(object.at("catalog"), "");
}

}  // namespace petlab::sweeps
