#include "sweeps/catalog_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/shown.h"
#include "sweeps/fields.h"
#include "sweeps/vocabulary.h"

namespace petlab::sweeps::internal {
namespace {

using nlohmann::json;

constexpr std::size_t kMostEntries = 200;

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != ',' && c != '"' && c != '\\';
  });
}

bool is_in_module(std::string_view name) { return name.starts_with("module."); }

metrics::SizeFormula formula_in(const std::string& where, const json& text) {
  if (!text.is_string()) refuse_catalog(where, text, "a sum of products such as 2·r·d + r");
  try {
    return metrics::SizeFormula(text.get_ref<const std::string&>());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("catalog.{}: {}", where, error.what()));
  }
}

}  // namespace

void refuse_catalog(const std::string& key, const json& found, std::string_view wanted) {
  throw std::invalid_argument(fmt::format("catalog{}{}: found {}, expected {}",
                                          key.empty() ? "" : ".", key, base::shown(found), wanted));
}

CatalogKeys::CatalogKeys(std::string where, const json& object)
    : where_(std::move(where)), object_(object) {
  if (!object.is_object()) refuse_catalog(where_, object, "an object");
}

const json* CatalogKeys::find(const std::string& key) {
  known_.push_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

std::string CatalogKeys::text(const std::string& key, const std::string& otherwise) {
  const json* const found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) refuse_catalog(name(key), *found, "a text");
  return found->get<std::string>();
}

std::vector<std::string> CatalogKeys::texts(const std::string& key) {
  const json* const found = find(key);
  if (found == nullptr) return {};
  const bool good =
      found->is_array() &&
      std::all_of(found->begin(), found->end(), [](const json& item) { return item.is_string(); });
  if (!good || found->size() > kMostEntries) refuse_catalog(name(key), *found, "a list of texts");
  return found->get<std::vector<std::string>>();
}

json CatalogKeys::entries(const std::string& key) {
  const json* const found = find(key);
  if (found == nullptr) return json::object();
  if (!found->is_object() || found->size() > kMostEntries) {
    refuse_catalog(name(key), *found, "an object");
  }
  return *found;
}

bool CatalogKeys::is_set(const std::string& key) {
  const json* const found = find(key);
  if (found != nullptr && !found->is_boolean()) {
    refuse_catalog(name(key), *found, "true or false");
  }
  return found != nullptr && found->get<bool>();
}

metrics::SizeFormula CatalogKeys::formula(const std::string& key) {
  const json* const found = find(key);
  return found == nullptr ? metrics::SizeFormula() : formula_in(name(key), *found);
}

std::vector<metrics::SizeFormula> CatalogKeys::formulas(const std::string& key) {
  std::vector<metrics::SizeFormula> all;
  for (const std::string& text : texts(key)) all.push_back(formula_in(name(key), json(text)));
  return all;
}

void CatalogKeys::refuse_others() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    throw std::invalid_argument(fmt::format("catalog.{}: unknown key; expected {}", name(key),
                                            with_nearest("a key of this object", key, known_)));
  }
}

std::string CatalogKeys::name(const std::string& key) const {
  return where_.empty() ? key : where_ + "." + key;
}

void check_name(const std::string& where, const std::string& name) {
  if (!is_plain_name(name)) {
    refuse_catalog(where, json(name),
                   "a name of at most 100 printable ASCII characters without spaces");
  }
}

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

}  // namespace petlab::sweeps::internal
