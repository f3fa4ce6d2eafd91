#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace petlab::base {

// Building blocks of JSON Schemas (draft 2020-12) for YAML files.

using JsonSchema = nlohmann::ordered_json;

/// The first keys of a whole schema.
JsonSchema schema_head(std::string_view title);
JsonSchema schema_any_of(std::initializer_list<JsonSchema> all);
/// A list of at least one item.
JsonSchema schema_list(JsonSchema item);
/// An object that may have these keys and no others.
JsonSchema schema_object(JsonSchema properties);
JsonSchema schema_words(std::initializer_list<std::string_view> words);
/// `#/$defs/name`
JsonSchema schema_reference(const std::string& name);
/// A scalar that is read as text, such as `sweep: 2024`.
JsonSchema schema_text(std::string_view description = {});
/// Likewise, but may be empty.
JsonSchema schema_scalar();
/// Requires all of these keys. Merge it with an object's other conditions.
JsonSchema schema_with(std::initializer_list<std::string_view> keys);
/// Forbids all of these keys.
JsonSchema schema_without(std::initializer_list<std::string_view> keys);

}  // namespace petlab::base
