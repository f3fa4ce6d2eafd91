#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace petlab::base {

// Parts of JSON Schemas (draft 2020-12) for YAML files.

using JsonSchema = nlohmann::ordered_json;

/// The beginning of a whole schema.
JsonSchema schema_head(std::string_view title);
JsonSchema schema_any_of(std::initializer_list<JsonSchema> all);
/// A list of at least one item.
JsonSchema schema_list(JsonSchema item);
/// An object with these keys, none of which is required, and no others.
JsonSchema schema_object(JsonSchema properties);
JsonSchema schema_words(std::initializer_list<std::string_view> words);
/// `#/$defs/name`
JsonSchema schema_reference(const std::string& name);
/// A scalar that is read as text: `sweep: 2024` is one.
JsonSchema schema_text(std::string_view description = {});
/// The same; it may also be empty.
JsonSchema schema_scalar();
/// An object that has all of these keys; the other conditions of an object are added to it.
JsonSchema schema_with(std::initializer_list<std::string_view> keys);
/// An object that has none of these keys.
JsonSchema schema_without(std::initializer_list<std::string_view> keys);

}  // namespace petlab::base
