#include "sweeps/schema.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>

#include "base/json_schema.h"
#include "metrics/metric_table.h"
#include "metrics/storage.h"
#include "sweeps/catalog.h"
#include "sweeps/fields.h"
#include "sweeps/sweep_file.h"
#include "sweeps/task.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {
namespace {

using base::schema_any_of;
using base::schema_list;
using base::schema_object;
using base::schema_reference;
using base::schema_scalar;
using base::schema_text;
using base::schema_with;
using base::schema_without;
using Schema = base::JsonSchema;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

bool accepts(const Field& field, const nlohmann::json& value) {
  TrialConfig config;
  return field.set(config, value) && field.in_range(config);
}

// The last accepted number between the accepted `good` and `bound`, by bisection.
std::int64_t last_accepted(std::int64_t good, std::int64_t bound,
                           const std::function<bool(std::int64_t)>& is_good) {
  if (is_good(bound)) return bound;
  while (true) {
    const std::int64_t middle = std::midpoint(good, bound);  // rounds to `good`
    if (middle == good) return good;
    (is_good(middle) ? good : bound) = middle;
  }
}

// Maps doubles to consecutive integers in their order; 0 maps to 0.
double number_at(std::int64_t place) {
  return place < 0 ? -std::bit_cast<double>(-place) : std::bit_cast<double>(place);
}
std::int64_t place_of(double number) {
  return number < 0 ? -std::bit_cast<std::int64_t>(-number)
                    : std::bit_cast<std::int64_t>(number + 0.0);
}

// Writes the bound as the last accepted or the first rejected number, whichever is shorter.
void put_bound(Schema& schema, double last, double beyond, const char* inclusive,
               const char* exclusive) {
  const bool is_open = Schema(beyond).dump().size() < Schema(last).dump().size();
  schema[is_open ? exclusive : inclusive] = is_open ? beyond : last;
}

// The schema of a field that a worker declares.
Schema declared_schema(const DeclaredField& field) {
  if (!field.values.empty()) return {{"enum", field.values}};
  Schema schema = {{"type", field.type == FieldType::integer   ? "integer"
                            : field.type == FieldType::number  ? "number"
                            : field.type == FieldType::boolean ? "boolean"
                                                               : "string"}};
  if (field.least) schema["minimum"] = Schema::parse(field.least->dump());
  if (field.most) schema["maximum"] = Schema::parse(field.most->dump());
  return schema;
}

Schema number_schema(const Field& field) {
  const auto is_good = [&](std::int64_t place) { return accepts(field, number_at(place)); };
  const std::int64_t usual = place_of(field.get(TrialConfig()).get<double>());
  const std::int64_t most = place_of(std::numeric_limits<double>::max());
  // A default outside the range (-1: as in the backbone) is allowed as a separate value.
  const std::int64_t inside = usual < 0 && !is_good(usual + 1) ? 0 : usual;
  const std::int64_t low = last_accepted(inside, -most, is_good);
  const std::int64_t high = last_accepted(inside, most, is_good);
  Schema schema = {{"type", "number"}};
  if (low != -most) {
    put_bound(schema, number_at(low), number_at(low - 1), "minimum", "exclusiveMinimum");
  }
  if (high != most) {
    put_bound(schema, number_at(high), number_at(high + 1), "maximum", "exclusiveMaximum");
  }
  if (inside == usual) return schema;
  return schema_any_of({{{"const", number_at(usual)}}, std::move(schema)});
}

Schema integer_schema(const Field& field) {
  const auto is_good = [&](std::int64_t value) { return accepts(field, value); };
  const auto usual = field.get(TrialConfig()).get<std::int64_t>();
  return {{"type", "integer"},
          {"minimum", last_accepted(usual, kLowest, is_good)},
          {"maximum", last_accepted(usual, kHighest, is_good)}};
}

Schema words_schema(const Field& field, std::string_view catalog) {
  Schema words = Schema::array();
  const auto add = [&](std::string_view word) {
    if (accepts(field, word)) words.push_back(word);
  };
  if (field.name == "module.kind") {
    words = kinds_of(catalog);
  } else {
    for (const auto mask :
         {metrics::MaskKind::none, metrics::MaskKind::learned, metrics::MaskKind::random}) {
      add(metrics::to_string(mask));
    }
    for (const auto way : {metrics::MaskCombination::or_, metrics::MaskCombination::and_,
                           metrics::MaskCombination::add}) {
      add(metrics::to_string(way));
    }
    for (const auto type : {ComputeType::float32, ComputeType::bf16}) add(to_string(type));
  }
  return {{"enum", std::move(words)}};
}

Schema type_schema(const Field& field, std::string_view catalog) {
  if (field.declared != nullptr) return declared_schema(*field.declared);
  switch (field.type) {
    case FieldType::text:
      return accepts(field, "any text") ? Schema({{"type", "string"}, {"minLength", 1}})
                                        : words_schema(field, catalog);
    case FieldType::integer:
      return integer_schema(field);
    case FieldType::number:
      return number_schema(field);
    case FieldType::boolean:
      break;
  }
  return {{"type", "boolean"}};
}

Schema field_schema(const Field& field, std::string_view catalog) {
  Schema schema = type_schema(field, catalog);
  schema["description"] = field.help;
  const std::string usual = default_text(field);
  if (!usual.empty()) {
    schema["description"] = std::string(field.help) + " (default: " + usual + ")";
  }
  return schema;
}

bool has_size(const Field& field) {
  const auto rows = modules();
  return field.name == "module.sparsity_ratio" ||
         std::any_of(rows.begin(), rows.end(),
                     [&](const ModuleRow& row) { return row.size_field() == field.name; });
}

// How values are written in this place: a value, a list of values, a condition's operand, or what a
// search draws from.
enum class SettingPlace { value, list, condition, search };

// `range` allows integer ranges such as 1..5.
Schema in_place(SettingPlace place, Schema value, bool range) {
  if (place == SettingPlace::value) return value;
  const Schema one =
      range ? schema_any_of({std::move(value), schema_reference("range")}) : std::move(value);
  if (place == SettingPlace::condition) return schema_any_of({one, schema_list(one)});
  return range ? schema_any_of({schema_list(one), schema_reference("range")}) : schema_list(one);
}

Schema or_distribution(SettingPlace place, Schema value) {
  if (place != SettingPlace::search) return value;
  return schema_any_of({std::move(value), schema_reference("distribution")});
}

Schema field_in_place(const Field& field, SettingPlace place) {
  const bool may_match = place != SettingPlace::condition && has_size(field);
  Schema value = schema_reference(std::string(field.name));
  if (may_match) value = schema_any_of({std::move(value), schema_reference("match_storage_of")});
  Schema schema = in_place(place, std::move(value), field.type == FieldType::integer);
  const bool is_number = field.type == FieldType::integer || field.type == FieldType::number;
  return is_number ? or_distribution(place, std::move(schema)) : schema;
}

// A group of settings: fields with dotted names and in groups, plus tasks, user and priority.
Schema settings_schema(SettingPlace place, std::string_view catalog) {
  Schema properties = Schema::object();
  for (const Field& field : fields()) {
    if (!is_field_of(field, catalog)) continue;
    const std::string name(field.name);
    Schema value = field_in_place(field, place);
    if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      Schema& group = properties[name.substr(0, dot)];
      if (group.is_null()) {
        group = schema_object(Schema::object());
        group["type"] = Schema::array({"object", "null"});
      }
      group["properties"][name.substr(dot + 1)] = value;
    }
    properties[name] = std::move(value);
  }
  const Schema user = or_distribution(place, in_place(place, schema_reference("user"), false));
  const Schema tasks = schema_reference("tasks");
  properties["task"] = in_place(place, schema_reference("task"), false);
  properties["tasks"] =
      place == SettingPlace::list || place == SettingPlace::search ? schema_list(tasks) : tasks;
  properties["priority"] =
      or_distribution(place, in_place(place, schema_reference("priority"), false));
  properties["resources.gpus"] =
      or_distribution(place, in_place(place, schema_reference("gpus"), false));
  properties["resources"] = schema_object({{"gpus", properties["resources.gpus"]}});
  properties["resources"]["type"] = Schema::array({"object", "null"});
  properties["user"] = {{"type", {"object", "null"}}, {"additionalProperties", user}};
  if (place == SettingPlace::condition) {
    properties["variant"] = in_place(place, schema_reference("name"), false);
  }
  if (place == SettingPlace::search) {
    const auto count = [](const char* description) -> Schema {
      return {{"type", "integer"},
              {"minimum", 1},
              {"maximum", kMaxTrials},
              {"description", description}};
    };
    properties["trials"] = count("how many points to draw");
    properties["by"] = base::schema_words({"random", "tpe"});
    properties["startup"] = count("tpe: how many points to draw at random first (default: 10)");
    properties["per_round"] = count("tpe: how many points to suggest together (default: 4)");
    properties["metric"] = {
        {"type", "string"},
        {"minLength", 1},
        {"description", "tpe: the metric to optimise (default: that which selects the best step)"}};
    properties["search_seed"] = {{"type", "integer"},
                                 {"minimum", kLowest},
                                 {"maximum", kHighest},
                                 {"description", "for other points"}};
  }
  Schema schema = schema_object(std::move(properties));
  schema["patternProperties"] = {{"^user\\.", user}};
  schema["not"] = {{"required", {"task", "tasks"}}};
  if (place == SettingPlace::search) {
    schema["required"] = Schema::array({"trials"});
    Schema by_tpe = {{"required", {"by"}}};
    by_tpe["properties"]["by"]["const"] = "tpe";
    for (const char* key : {"startup", "per_round", "metric"}) {
      schema["dependentSchemas"][key] = by_tpe;
    }
  }
  return schema;
}

// The group with at least one entry.
Schema filled(const std::string& group) {
  return {{"allOf", Schema::array({schema_reference(group)})}, {"minProperties", 1}};
}

// Matches an object with `key: word`.
Schema says(const char* key, std::string_view word) {
  Schema schema = schema_with({key});
  schema["properties"][key]["const"] = word;
  return schema;
}

Schema when(Schema condition, Schema then) {
  return {{"if", std::move(condition)}, {"then", std::move(then)}};
}

// Matches a task with that target among its columns.
Schema has_target(const char* column) {
  Schema schema = schema_with({"columns"});
  schema["properties"]["columns"] = schema_with({column});
  return schema;
}

Schema has_files(Schema properties, std::initializer_list<std::string_view> required) {
  Schema files = schema_with(required);
  files["properties"] = std::move(properties);
  Schema schema;
  schema["properties"]["files"] = std::move(files);
  return schema;
}

Schema early_stop_schema() {
  const Schema validation = {{"type", "integer"}, {"minimum", 1}};
  const auto rule = [](std::string_view name, Schema keys) {
    Schema schema = schema_object({{"rule", {{"const", name}}}, {"metric", schema_text()}});
    schema["properties"].update(keys);
    schema["required"] = Schema::array({"rule"});
    return schema;
  };
  Schema halving =
      rule("halving",
           {{"at", {{"type", "array"}, {"minItems", 1}, {"items", validation}}},
            {"keep",
             schema_any_of({{{"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}},
                            {{"type", "string"}, {"pattern", "^[0-9]+/[0-9]+$"}}})}});
  halving["required"].push_back("at");
  Schema schema = schema_any_of(
      {std::move(halving),
       rule("median", {{"after", validation}}),
       rule("paired", {{"after", validation},
                       {"against", schema_reference("name")},
                       {"p", {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 0.5}}}}),
       {{"type", "null"}}});
  schema["description"] = "when to stop trials that lose against others";
  return schema;
}

}  // namespace

Schema sweep_schema(std::string_view catalog) {
  Schema defs = Schema::object();
  defs["name"] = schema_text("the name of a sweep or a variant");
  defs["name"]["maxLength"] = 100;
  defs["name"]["pattern"] = "^[^\\u0000-\\u001f\\u007f]*$";
  defs["range"] = {{"type", "string"},
                   {"pattern", "^-?[0-9]+\\.\\.-?[0-9]+$"},
                   {"description", "whole numbers: 1..5"}};
  const std::string number = "-?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?";
  defs["distribution"] = {{"type", "string"},
                          {"pattern", "^(log|uniform)\\( *" + number + " *, *" + number + " *\\)$"},
                          {"description", "log(1e-5, 1e-2) or uniform(0, 0.2)"}};
  defs["match_storage_of"] = schema_object({{"match_storage_of", schema_reference("name")}});
  defs["match_storage_of"]["required"] = Schema::array({"match_storage_of"});
  defs["match_storage_of"]["description"] = "the size whose storage is nearest to a variant's";
  defs["task"] = {{"type", "string"},
                  {"minLength", 1},
                  {"description", "the name of a task, or of a .yaml file that declares one"}};
  defs["tasks"] = schema_list(schema_reference("task"));
  defs["user"] = schema_scalar();
  defs["user"]["description"] = "a setting for your own worker";
  defs["priority"] = {{"type", "integer"},
                      {"minimum", -1'000'000},
                      {"maximum", 1'000'000},
                      {"description", "trials of a higher priority start first"}};
  defs["gpus"] = {{"type", "integer"},
                  {"minimum", 1},
                  {"maximum", 1024},
                  {"description", "the GPUs of the trial's worker"}};
  for (const Field& field : fields()) {
    if (is_field_of(field, catalog)) {
      defs[std::string(field.name)] = field_schema(field, catalog);
    }
  }
  defs["settings"] = settings_schema(SettingPlace::value, catalog);
  defs["lists"] = settings_schema(SettingPlace::list, catalog);
  defs["conditions"] = settings_schema(SettingPlace::condition, catalog);
  defs["searched"] = settings_schema(SettingPlace::search, catalog);

  const Schema settings_or_null = schema_any_of({schema_reference("settings"), {{"type", "null"}}});
  Schema variants = {{"type", "object"},
                     {"minProperties", 1},
                     {"propertyNames", schema_reference("name")},
                     {"additionalProperties", settings_or_null}};
  Schema rule = schema_object({{"if", filled("conditions")}, {"set", filled("settings")}});
  rule["required"] = Schema::array({"if", "set"});
  const auto rules = [](Schema item) {
    return Schema({{"type", {"array", "null"}}, {"items", std::move(item)}});
  };
  Schema schema = base::schema_head("a sweep file of petlab");
  schema.update(
      schema_object({{"sweep", schema_reference("name")},
                     {"about", schema_scalar()},
                     {"base", settings_or_null},
                     {"variants", std::move(variants)},
                     {"zip", rules(filled("lists"))},
                     {"grid", schema_any_of({schema_reference("lists"), {{"type", "null"}}})},
                     {"search", schema_any_of({schema_reference("searched"), {{"type", "null"}}})},
                     {"when", rules(std::move(rule))},
                     {"exclude", rules(filled("conditions"))},
                     {"stop_early", early_stop_schema()}}));
  schema["required"] = Schema::array({"sweep"});
  schema["$defs"] = std::move(defs);
  return schema;
}

Schema task_schema() {
  const auto names = [](std::initializer_list<metrics::MetricInput> inputs) {
    Schema all = Schema::array();
    for (const metrics::MetricRow& row : metrics::metric_table()) {
      if (std::find(inputs.begin(), inputs.end(), row.input) != inputs.end()) {
        all.push_back(row.name);
      }
    }
    const Schema one = {{"enum", std::move(all)}};
    return schema_any_of({one, schema_list(one)});
  };
  using metrics::MetricInput;
  const Schema metric = names({MetricInput::labels, MetricInput::scores, MetricInput::text});
  Schema built_in = Schema::array();
  for (const TaskDeclaration& task : tasks()) built_in.push_back(task.name);
  Schema name = schema_text("its name in results; no built-in task's");
  name["pattern"] = "^[A-Za-z0-9._-]{1,100}$";
  name["not"] = {{"enum", std::move(built_in)}};
  Schema files = schema_object(
      {{"train", schema_text()}, {"validation", schema_scalar()}, {"test", schema_scalar()}});
  files["required"] = Schema::array({"train"});
  Schema columns =
      schema_object({{"text", schema_any_of({schema_text(), schema_list(schema_text())})},
                     {"label", schema_text()},
                     {"score", schema_text()},
                     {"sign", schema_text()},
                     {"target", schema_text()}});
  columns["properties"]["text"]["anyOf"][1]["maxItems"] = 2;
  columns["required"] = Schema::array({"text"});
  columns["oneOf"] = Schema::array({schema_with({"label"}), schema_with({"score"}),
                                    schema_with({"sign"}), schema_with({"target"})});
  Schema labels = {{"type", "array"},     {"items", schema_scalar()},
                   {"minItems", 2},       {"maxItems", 1000},
                   {"uniqueItems", true}, {"description", "in the order of their numbers"}};
  Schema score = schema_object({{"min", {{"type", "number"}}}, {"max", {{"type", "number"}}}});
  Schema text_to_text =
      schema_object({{"source", schema_text("how a T5 sees an example")},
                     {"targets", schema_any_of({schema_scalar(), schema_list(schema_scalar())})}});
  text_to_text["required"] = Schema::array({"source"});

  Schema schema = base::schema_head("a file that declares a task of petlab");
  schema.update(
      schema_object({{"task", std::move(name)},
                     {"about", schema_scalar()},
                     {"source", schema_scalar()},
                     {"files", std::move(files)},
                     {"split",
                      {{"enum",
                        {to_string(SplitRule::given), to_string(SplitRule::glue_small),
                         to_string(SplitRule::glue_large), to_string(SplitRule::one_file)}}}},
                     {"format",
                      {{"enum",
                        {to_string(FileFormat::tsv), to_string(FileFormat::csv),
                         to_string(FileFormat::jsonl), to_string(FileFormat::aligned)}}}},
                     {"header", {{"type", "boolean"}}},
                     {"skip_short_rows", {{"type", "boolean"}}},
                     {"extra_columns", base::schema_words({"refuse", "ignore"})},
                     {"columns", std::move(columns)},
                     {"labels", std::move(labels)},
                     {"score", std::move(score)},
                     {"metrics", metric},
                     {"select_by", metric},
                     {"text_to_text", std::move(text_to_text)}}));
  schema["required"] = Schema::array({"task", "files", "columns", "metrics"});

  // Dependencies between keys.
  const auto metrics_of = [&](MetricInput input) {
    return Schema({{"metrics", names({input})}, {"select_by", names({input})}});
  };
  const Schema nothing = {{"type", "null"}};
  const Schema given_files =
      has_files({{"validation", schema_text()}, {"test", schema_text()}}, {"validation", "test"});
  const Schema glue_files =
      has_files({{"validation", schema_text()}, {"test", nothing}}, {"validation"});
  Schema no_format = schema_without({"format"});
  Schema label_rules = schema_without({"score"});
  label_rules["properties"] = metrics_of(MetricInput::labels);
  label_rules.update(schema_with({"labels"}));
  Schema sign_rules = {{"properties", metrics_of(MetricInput::labels)}};
  sign_rules["properties"]["labels"] = {{"maxItems", 2}};
  Schema score_rules = {{"properties", metrics_of(MetricInput::scores)}};
  score_rules.update(schema_without({"labels"}));
  Schema text_rules = {{"properties", metrics_of(MetricInput::text)}};
  text_rules.update(schema_without({"labels", "score"}));
  schema["allOf"] = Schema::array(
      {when({{"anyOf", {schema_without({"split"}), says("split", "given")}}}, given_files),
       when({{"anyOf", {says("split", "glue_small"), says("split", "glue_large")}}}, glue_files),
       when(says("split", "one_file"), has_files({{"validation", nothing}, {"test", nothing}}, {})),
       when(std::move(no_format), has_files({{"train", {{"pattern", "\\.(tsv|csv|jsonl)$"}}}}, {})),
       when(says("format", "aligned"),
            schema_without({"header", "skip_short_rows", "extra_columns"})),
       when(says("format", "jsonl"), schema_without({"extra_columns"})),
       when(has_target("label"), std::move(label_rules)),
       when(has_target("sign"), std::move(sign_rules)),
       when(has_target("score"), std::move(score_rules)),
       when(has_target("target"), std::move(text_rules))});
  return schema;
}

}  // namespace petlab::sweeps
