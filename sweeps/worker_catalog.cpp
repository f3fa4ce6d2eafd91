#include "sweeps/worker_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "metrics/metric_table.h"
#include "sweeps/vocabulary.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

// Groups and names that mean something else in a sweep file or a configuration.
constexpr std::string_view kReserved[] = {"user",    "task",     "tasks",  "priority",
                                          "variant", "backbone", "catalog"};
constexpr std::size_t kMostEntries = 200;

[[noreturn]] void refuse_catalog(const std::string& key, const json& found,
                                 std::string_view wanted) {
  throw std::invalid_argument(fmt::format("catalog{}{}: found {}, expected {}",
                                          key.empty() ? "" : ".", key, base::shown(found), wanted));
}

// Reads an object and refuses keys that nobody asked for.
class Keys {
 public:
  Keys(std::string where, const json& object) : where_(std::move(where)), object_(object) {
    if (!object.is_object()) refuse_catalog(where_, object, "an object");
  }

  const json* find(const std::string& key) {
    known_.push_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  std::string text(const std::string& key, const std::string& otherwise) {
    const json* const found = find(key);
    if (found == nullptr) return otherwise;
    if (!found->is_string()) refuse_catalog(name(key), *found, "a text");
    return found->get<std::string>();
  }

  std::vector<std::string> texts(const std::string& key) {
    const json* const found = find(key);
    if (found == nullptr) return {};
    const bool good =
        found->is_array() && std::all_of(found->begin(), found->end(),
                                         [](const json& item) { return item.is_string(); });
    if (!good || found->size() > kMostEntries) refuse_catalog(name(key), *found, "a list of texts");
    return found->get<std::vector<std::string>>();
  }

  /// The entries of an object; none if it is absent.
  json entries(const std::string& key) {
    const json* const found = find(key);
    if (found == nullptr) return json::object();
    if (!found->is_object() || found->size() > kMostEntries) {
      refuse_catalog(name(key), *found, "an object");
    }
    return *found;
  }

  void refuse_others() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      throw std::invalid_argument(fmt::format("catalog.{}: unknown key; expected {}", name(key),
                                              with_nearest("a key of this object", key, known_)));
    }
  }

  std::string name(const std::string& key) const {
    return where_.empty() ? key : where_ + "." + key;
  }

 private:
  std::string where_;
  const json& object_;
  std::vector<std::string> known_;
};

bool is_word(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != ',' && c != '"' && c != '\\';
  });
}

void check_name(const std::string& where, const std::string& name) {
  if (!is_plain_name(name)) {
    refuse_catalog(where, json(name),
                   "a name of at most 100 printable ASCII characters without spaces");
  }
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
  Keys keys(where, object);
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

bool is_in_module(std::string_view name) { return name.starts_with("module."); }

void check_uses(const std::string& where, const std::vector<std::string>& names, bool in_module) {
  std::vector<std::string> known;
  for (const Field& field : internal::builtin_fields()) {
    const bool always =
        field.name == "seed" || field.name == "module.kind" || field.name == "backbone";
    if (!always && is_in_module(field.name) == in_module) known.emplace_back(field.name);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse_catalog(
        where, json(name),
        with_nearest(in_module ? "a field of the group module" : "a field outside module", name,
                     known));
  }
}

std::vector<std::string> fields_outside_module() {
  std::vector<std::string> all;
  for (const Field& field : internal::builtin_fields()) {
    const bool of_t5 = field.use == FieldUse::t5 || field.use == FieldUse::beams;
    if (!is_in_module(field.name) && field.name != "seed" && field.name != "backbone" && !of_t5) {
      all.emplace_back(field.name);
    }
  }
  return all;
}

std::vector<KindDefault> read_defaults(const std::string& inside, const json& entries) {
  std::vector<KindDefault> defaults;
  for (const auto& [key, value] : entries.items()) {
    const std::string& name = key;  // clang 14 captures no structured bindings
    const auto fields = internal::builtin_fields();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& row) { return row.name == name; });
    const std::string where = fmt::format("{}defaults.{}", inside, name);
    if (field == fields.end() || name == "module.kind" || name == "backbone" || name == "seed") {
      refuse_catalog(where, value, "the default of a built-in field");
    }
    TrialConfig scratch;
    if (!field->set(scratch, value) || !field->in_range(scratch)) {
      refuse_catalog(where, value, field->wanted);
    }
    defaults.push_back({field->name, value});
  }
  return defaults;
}

void read_metrics(const json& entries, WorkerCatalog& catalog) {
  for (const auto& [name, value] : entries.items()) {
    const std::string where = "metrics." + name;
    check_name(where, name);
    Keys keys(where, value);
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
    Keys keys(where, value);
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

metrics::SizeFormula formula_in(const std::string& where, const json& text) {
  if (!text.is_string()) refuse_catalog(where, text, "a sum of products such as 2·r·d + r");
  try {
    return metrics::SizeFormula(text.get_ref<const std::string&>());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("catalog.{}: {}", where, error.what()));
  }
}

metrics::SizeFormula read_formula(Keys& keys, const std::string& key) {
  const json* const found = keys.find(key);
  return found == nullptr ? metrics::SizeFormula() : formula_in(keys.name(key), *found);
}

std::vector<metrics::SizeFormula> read_formulas(Keys& keys, const std::string& key) {
  std::vector<metrics::SizeFormula> all;
  for (const std::string& text : keys.texts(key)) {
    all.push_back(formula_in(keys.name(key), json(text)));
  }
  return all;
}

bool read_switch(Keys& keys, const std::string& key) {
  const json* const found = keys.find(key);
  if (found != nullptr && !found->is_boolean()) {
    refuse_catalog(keys.name(key), *found, "true or false");
  }
  return found != nullptr && found->get<bool>();
}

// Reads the names of sizes in the kind's formulas, `{"r": "module.rank"}`, and which of them is the
// module's size.
void read_sizes(Keys& keys, const WorkerCatalog& catalog, DeclaredKind& row) {
  std::vector<std::string> known = row.uses;
  for (const DeclaredField& field : catalog.fields) {
    const bool is_size = field.type == FieldType::integer || field.type == FieldType::boolean;
    if (is_size) known.push_back(field.name);
  }
  const std::string size = keys.text("size", "");
  const json sizes = keys.entries("sizes");
  for (const auto& [name, field] : sizes.items()) {
    if (!field.is_string() || std::find(known.begin(), known.end(), field) == known.end()) {
      refuse_catalog(keys.name("sizes." + name), field,
                     "a field of this kind whose values are whole numbers or switches");
    }
    const auto place = name == size ? row.sizes.begin() : row.sizes.end();
    row.sizes.insert(place, {name, field.get<std::string>()});
  }
  const bool found =
      size.empty() ? row.sizes.empty() : !row.sizes.empty() && row.sizes.front().name == size;
  if (!found) refuse_catalog(keys.name("size"), json(size), "one of the names in sizes");
}

// Refuses names that have no value in a storage formula.
void check_formula(const std::string& where, const metrics::SizeFormula& formula,
                   const DeclaredKind& row, std::vector<std::string> known) {
  for (const metrics::SizeName& size : row.sizes) known.push_back(size.name);
  for (const std::string& name : formula.names()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse_catalog(where, json(name), with_nearest("a name of a size", name, known));
  }
}

void read_storage(Keys& keys, DeclaredKind& row, bool own) {
  const json* const found = keys.find("storage");
  if (found == nullptr || *found == "reported") return;
  if (*found == "backbone" || *found == "none") {
    row.storage = *found == "none" ? StorageRule::none : StorageRule::backbone;
    return;
  }
  const std::string where = keys.name("storage");
  if (!found->is_object()) {
    refuse_catalog(where, *found, "reported, backbone, none or an object of formulas");
  }
  Keys parts(where, *found);
  row.storage = StorageRule::formula;
  row.formula.kind = row.kind;
  row.formula.weights = read_formulas(parts, "weights");
  row.formula.biases = read_formula(parts, "biases");
  row.formula.per_model = read_switch(parts, "per_model");
  row.layers = read_formula(parts, "layers");
  parts.refuse_others();
  metrics::SizeFormula all = row.formula.biases;
  for (const metrics::SizeFormula& matrix : row.formula.weights) all.add(matrix);
  if (own) {
    check_formula(where, all, row, {"d", "w", "L", "T"});
    check_formula(where + ".layers", row.layers, row, {"L", "Le", "Ld"});
  } else if (row.layers.is_zero() && !row.formula.per_model) {
    refuse_catalog(where, *found, "layers, or per_model: true");
  }
  const std::vector<std::string> used = all.names();
  for (const metrics::SizeName& size : row.sizes) {
    if (std::find(used.begin(), used.end(), size.name) != used.end()) {
      row.formula.sizes.push_back(size);
    }
  }
  const bool uses_size =
      !row.formula.sizes.empty() && row.formula.sizes.front().name == row.sizes.front().name;
  if (!row.sizes.empty() && !uses_size) {
    refuse_catalog(where, *found, "formulas with the kind's size");
  }
}

// What petlab knows of its own trainer only.
void read_own(Keys& keys, DeclaredKind& row) {
  row.formats = keys.texts("formats");
  const std::string only = keys.text("only", "");
  row.backbones = only == "encoder"        ? ModuleBackbones::encoder
                  : only == "text_to_text" ? ModuleBackbones::text_to_text
                                           : ModuleBackbones::any;
  const json entries = keys.entries("memory");
  Keys memory(keys.name("memory"), entries);
  row.memory.inside_attention = read_switch(memory, "inside_attention");
  row.memory.after_attention = read_switch(memory, "after_attention");
  row.memory.after_feed_forward = read_switch(memory, "after_feed_forward");
  row.memory.keeps = read_formula(memory, "keeps");
  row.memory.keeps_once = read_formula(memory, "keeps_once");
  row.memory.keys = read_formula(memory, "keys");
  row.memory.trained = read_formulas(memory, "trained");
  memory.refuse_others();
}

void read_kinds(const nlohmann::ordered_json& entries, WorkerCatalog& catalog, bool own) {
  for (const auto& [kind, ordered] : entries.items()) {
    const std::string where = "kinds." + kind;
    check_name(where, kind);
    const json value = ordered;
    Keys keys(where, value);
    DeclaredKind row;
    row.kind = kind;
    row.help = keys.text("help", "");
    row.uses = keys.texts("uses");
    check_uses(where + ".uses", row.uses, true);
    row.defaults = read_defaults(where + ".", keys.entries("defaults"));
    read_sizes(keys, catalog, row);
    read_storage(keys, row, own);
    if (own) read_own(keys, row);
    keys.refuse_others();
    catalog.kinds.push_back(std::move(row));
  }
  for (const DeclaredField& field : catalog.fields) {
    std::vector<std::string> known;
    for (const DeclaredKind& row : catalog.kinds) known.push_back(row.kind);
    if (known.empty()) known = kinds_of("");
    for (const std::string& kind : field.kinds) {
      if (std::find(known.begin(), known.end(), kind) != known.end()) continue;
      refuse_catalog(fmt::format("fields.{}.kinds", field.name), json(kind),
                     with_nearest("a kind of the catalog", kind, known));
    }
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
  Keys keys("", object);
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
  read_kinds(ordered.value("kinds", nlohmann::ordered_json::object()), catalog, own);
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
