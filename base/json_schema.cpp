#include "base/json_schema.h"

#include <utility>

namespace petlab::base {

JsonSchema schema_head(std::string_view title) {
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
}

JsonSchema schema_any_of(std::initializer_list<JsonSchema> all) {
  return {{"anyOf", JsonSchema::array_t(all)}};
}

JsonSchema schema_list(JsonSchema item) {
  return {{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}};
}

JsonSchema schema_object(JsonSchema properties) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

JsonSchema schema_words(std::initializer_list<std::string_view> words) {
  JsonSchema list = JsonSchema::array();
  for (const std::string_view word : words) list.push_back(word);
  return {{"enum", std::move(list)}};
}

JsonSchema schema_reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

JsonSchema schema_text(std::string_view description) {
  JsonSchema schema = {{"type", JsonSchema::array({"string", "number", "boolean"})},
                       {"minLength", 1}};
  if (!description.empty()) schema["description"] = description;
  return schema;
}

JsonSchema schema_scalar() {
  return {{"type", JsonSchema::array({"string", "number", "boolean", "null"})}};
}

JsonSchema schema_with(std::initializer_list<std::string_view> keys) {
  JsonSchema list = JsonSchema::array();
  for (const std::string_view key : keys) list.push_back(key);
  return {{"required", std::move(list)}};
}

JsonSchema schema_without(std::initializer_list<std::string_view> keys) {
  JsonSchema all = JsonSchema::array();
  for (const std::string_view key : keys) all.push_back(schema_with({key}));
  return {{"not", {{"anyOf", std::move(all)}}}};
}

}  // namespace petlab::base
