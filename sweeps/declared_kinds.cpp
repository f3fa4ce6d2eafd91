#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sweeps/catalog.h"
#include "sweeps/catalog_keys.h"
#include "sweeps/fields.h"
#include "sweeps/vocabulary.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps::internal {
namespace {

using nlohmann::json;

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Reads the names of sizes in the kind's formulas, `{"r": "module.rank"}`, and which of them is the
// module's size.
void read_sizes(CatalogKeys& keys, const WorkerCatalog& catalog, DeclaredKind& row) {
  std::vector<std::string> known;
  const auto add = [&](std::string_view name, FieldType type, bool applies) {
    const bool is_size = type == FieldType::integer || type == FieldType::boolean;
    if (is_size && applies) known.emplace_back(name);
  };
  for (const Field& field : builtin_fields()) {
    add(field.name, field.type, contains(row.uses, field.name));
  }
  for (const DeclaredField& field : catalog.fields) {
    add(field.name, field.type, field.kinds.empty() || contains(field.kinds, row.kind));
  }
  const std::string size = keys.text("size", "");
  const json sizes = keys.entries("sizes");
  for (const auto& [name, field] : sizes.items()) {
    if (!field.is_string() || !contains(known, field.get_ref<const std::string&>())) {
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
    if (contains(known, name)) continue;
    refuse_catalog(where, json(name), with_nearest("a name of a size", name, known));
  }
}

void read_storage(CatalogKeys& keys, DeclaredKind& row, bool own) {
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
  CatalogKeys parts(where, *found);
  row.storage = StorageRule::formula;
  row.formula.kind = row.kind;
  row.formula.weights = parts.formulas("weights");
  row.formula.biases = parts.formula("biases");
  row.formula.per_model = parts.is_set("per_model");
  row.layers = parts.formula("layers");
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
    if (contains(used, size.name)) row.formula.sizes.push_back(size);
  }
  const bool uses_size =
      !row.formula.sizes.empty() && row.formula.sizes.front().name == row.sizes.front().name;
  if (!row.sizes.empty() && !uses_size) {
    refuse_catalog(where, *found, "formulas with the kind's size");
  }
}

// What petlab knows of its own trainer only.
void read_own(CatalogKeys& keys, DeclaredKind& row) {
  row.formats = keys.texts("formats");
  const std::string only = keys.text("only", "");
  row.backbones = only == "encoder"        ? ModuleBackbones::encoder
                  : only == "text_to_text" ? ModuleBackbones::text_to_text
                                           : ModuleBackbones::any;
  const json entries = keys.entries("memory");
  CatalogKeys memory(keys.name("memory"), entries);
  row.memory.inside_attention = memory.is_set("inside_attention");
  row.memory.after_attention = memory.is_set("after_attention");
  row.memory.after_feed_forward = memory.is_set("after_feed_forward");
  row.memory.keeps = memory.formula("keeps");
  row.memory.keeps_once = memory.formula("keeps_once");
  row.memory.keys = memory.formula("keys");
  row.memory.trained = memory.formulas("trained");
  memory.refuse_others();
}

}  // namespace

void read_kinds(const nlohmann::ordered_json& entries, WorkerCatalog& catalog, bool own) {
  for (const auto& [kind, ordered] : entries.items()) {
    const std::string where = "kinds." + kind;
    check_name(where, kind);
    const json value = ordered;
    CatalogKeys keys(where, value);
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
      if (contains(known, kind)) continue;
      refuse_catalog(fmt::format("fields.{}.kinds", field.name), json(kind),
                     with_nearest("a kind of the catalog", kind, known));
    }
  }
}

}  // namespace petlab::sweeps::internal
