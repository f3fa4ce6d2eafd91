#include "reports/definition_schema.h"

#include <string>
#include <utility>

#include "base/json_schema.h"

namespace petlab::reports {
namespace {

using base::schema_any_of;
using base::schema_list;
using base::schema_object;
using base::schema_reference;
using base::schema_scalar;
using base::schema_text;
using base::schema_with;
using base::schema_words;
using Schema = base::JsonSchema;

Schema texts_schema() { return schema_any_of({schema_text(), schema_list(schema_text())}); }

Schema switch_schema() { return {{"enum", {true, false, "true", "false"}}}; }

// A number, possibly in quotes.
Schema numeric_schema(const char* type, const char* pattern) {
  return {{"type", {type, "string"}}, {"pattern", pattern}};
}

Schema file_name_schema(const char* description) {
  Schema schema = schema_text(description);
  schema["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9_.-]*$";
  return schema;
}

Schema spread_schema() { return schema_words({"deviation", "standard_error", "interval", "none"}); }

Schema cell_properties() {
  Schema scale = numeric_schema("number", "^[-+0-9.eE]+$");
  scale["not"] = {{"const", 0}};
  Schema digits = numeric_schema("integer", "^[0-9]+$");
  digits["minimum"] = 0;
  digits["maximum"] = 12;
  Schema cells;
  cells["value"] = schema_text("a field of the trials instead of the metric's value");
  cells["text"] = schema_text("a text with fields of the trials in braces");
  cells["average_over"] = schema_list(schema_reference("selection"));
  cells["scale"] = std::move(scale);
  cells["digits"] = std::move(digits);
  cells["better"] = schema_words({"higher", "lower", "none"});
  return cells;
}

// Allows only one of these in a cell.
Schema one_way() {
  return {{"not",
           {{"anyOf",
             {schema_with({"value", "text"}), schema_with({"value", "average_over"}),
              schema_with({"text", "average_over"})}}}}};
}

// A row, a column or a series.
Schema line_schema(const Schema& more) {
  Schema properties = {{"key", schema_text("unique in its list")},
                       {"name", schema_text()},
                       {"where", schema_reference("selection")},
                       {"each", texts_schema()}};
  properties.update(more);
  properties.update(cell_properties());
  Schema line = schema_object(std::move(properties));
  line.update(one_way());
  line["oneOf"] = Schema::array({schema_with({"key"}), schema_with({"each"})});
  return line;
}

// Published numbers, with or without x.
Schema points_schema(bool has_x) {
  const Schema text = schema_text();
  Schema points =
      schema_object({{"table", text}, {"row", text}, {"rows", text}, {"x", text}, {"y", text}});
  points.update(has_x ? schema_with({"table", "x", "y"}) : schema_with({"table", "y"}));
  points["oneOf"] = Schema::array({schema_with({"row"}), schema_with({"rows"})});
  return points;
}

Schema series_schema(bool has_x) {
  const Schema points = points_schema(has_x);
  Schema more;
  more["published"] = schema_any_of({points, {{"type", "array"}, {"items", points}}});
  return schema_list(line_schema(more));
}

Schema table_schema() {
  Schema cells = schema_object(cell_properties());
  cells.update(one_way());
  Schema table = schema_object(
      {{"rows", schema_list(line_schema({{"published", schema_text()},
                                         {"group", schema_text()},
                                         {"separate", switch_schema()}}))},
       {"columns",
        schema_list(line_schema({{"published", schema_text()}, {"relative_to", schema_text()}}))},
       {"cells", std::move(cells)},
       {"best", schema_words({"row", "column"})},
       {"published", schema_text("the table with the published numbers")},
       {"key", file_name_schema("its name in the report")},
       {"title", schema_text()},
       {"against", schema_text("the key that the others are tested against")},
       {"first", schema_words({"row", "column"})},
       {"errors", spread_schema()}});
  table.update(schema_with({"rows", "columns"}));
  return table;
}

Schema figure_schema() {
  const Schema cells = cell_properties();
  Schema x = schema_object({{"name", schema_text()},
                            {"log", switch_schema()},
                            {"value", schema_text("a field of the trials, or step")},
                            {"scale", cells["scale"]}});
  x.update(schema_with({"value"}));
  Schema y = schema_object({{"name", schema_text()},
                            {"log", switch_schema()},
                            {"where", schema_reference("selection")},
                            {"value", cells["value"]},
                            {"average_over", cells["average_over"]},
                            {"scale", cells["scale"]},
                            {"digits", cells["digits"]},
                            {"better", cells["better"]}});
  y.update(one_way());
  Schema figure = schema_object({{"x", std::move(x)},
                                 {"y", std::move(y)},
                                 {"series", series_schema(true)},
                                 {"horizontal", series_schema(false)},
                                 {"errors", spread_schema()},
                                 {"key", file_name_schema("its name in the report")},
                                 {"title", schema_text()}});
  figure.update(schema_with({"x", "y", "series"}));
  return figure;
}

Schema ranks_schema() {
  // A text has no rank.
  Schema lines = schema_list(line_schema(Schema::object()));
  lines["items"]["properties"].erase("text");
  Schema level = numeric_schema("number", "^[-+0-9.eE]+$");
  level["exclusiveMinimum"] = 0;
  level["maximum"] = 0.5;
  Schema ranks = schema_object({{"variants", lines},
                                {"tasks", lines},
                                {"test", schema_words({"nemenyi", "wilcoxon"})},
                                {"level", std::move(level)},
                                {"key", file_name_schema("its name in the report")},
                                {"title", schema_text()}});
  ranks.update(schema_with({"variants", "tasks"}));
  return ranks;
}

constexpr const char* kSections[] = {"table", "figure", "ranks"};

// A single section, or several with keys.
Schema sections_schema() {
  Schema properties;
  Schema with_key;
  for (const char* kind : kSections) {
    properties[kind] = schema_reference(kind);
    with_key["items"]["properties"][kind] = schema_with({"key"});
  }
  Schema section = schema_object(std::move(properties));
  section["maxProperties"] = 1;
  Schema sections = schema_list(std::move(section));
  sections.update(schema_any_of({{{"maxItems", 1}}, std::move(with_key)}));
  return sections;
}

}  // namespace

Schema definition_schema() {
  Schema parameters = numeric_schema("integer", "^0*[1-9][0-9]*$");
  parameters["minimum"] = 1;
  Schema schema = base::schema_head("the definition of a report of petlab");
  schema.update(
      schema_object({{"report", file_name_schema("its name")},
                     {"about", schema_text()},
                     {"sweep", texts_schema()},
                     {"where", schema_reference("selection")},
                     {"backbone_parameters",
                      {{"type", "object"}, {"additionalProperties", std::move(parameters)}}},
                     {"notes", texts_schema()},
                     {"sections", sections_schema()}}));
  schema.update(schema_with({"report"}));
  schema["oneOf"] = Schema::array({schema_with({"sections"})});
  for (const char* kind : kSections) {
    schema["properties"][kind] = schema_reference(kind);
    schema["oneOf"].push_back(schema_with({kind}));
  }
  const Schema words = {{"type", "string"}, {"minLength", 1}};
  const Schema values = schema_any_of({schema_scalar(), schema_list(schema_scalar())});
  Schema& defs = schema["$defs"];
  defs["selection"] =
      schema_any_of({words, {{"type", "object"}, {"additionalProperties", values}}});
  defs["selection"]["description"] = "conditions on trials: a text, or fields and their values";
  defs["table"] = table_schema();
  defs["figure"] = figure_schema();
  defs["ranks"] = ranks_schema();
  return schema;
}

}  // namespace petlab::reports
