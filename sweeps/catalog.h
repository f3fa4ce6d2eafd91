#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// A field whose default depends on the module's kind.
struct KindDefault {
  std::string_view field;  // dotted name
  nlohmann::json value;    // of the field's type
};

/// The backbones that a kind of module supports: encoders have heads, text-to-text ones a decoder.
enum class ModuleBackbones { any, encoder, text_to_text };

/// A row of the table of modules. trainer/modules/ has a table of the same kinds; a test keeps the
/// two equal.
struct ModuleRow {
  std::string_view kind;
  std::string_view help;
  /// Dotted names of the ModuleConfig fields that apply to this kind, without `module.kind`
  /// (`module.sparsity_ratio` only applies with a mask).
  std::vector<std::string_view> fields;
  /// The field for the module's size, which match_storage_of solves; empty: none.
  std::string_view size_field;
  /// The storage formula (metrics/storage.h); absent if only backbone and head are stored.
  std::optional<metrics::ModuleFamily> family;
  /// Defaults that differ from TrialConfig's initialisers.
  std::vector<KindDefault> defaults;
  ModuleBackbones backbones = ModuleBackbones::any;
  /// The id of the worker's catalog that declares the kind; empty: built in. A declared row's
  /// `fields` are all fields of its trials, also those outside `module`.
  std::string_view catalog = {};

  /// True if `fields` contains the field with that dotted name.
  bool has_field(std::string_view name) const;
};

/// The built-in kinds (adapter, lora, prefix, full_finetuning, head_only, hyperformer++), then
/// those that workers declare (sweeps/worker_catalog.h).
std::span<const ModuleRow> modules();
/// The row of a kind in a catalog (empty: the built-in one), or nullptr.
const ModuleRow* find_module(std::string_view kind, std::string_view catalog = {});
/// The row of the configuration's kind, or nullptr.
const ModuleRow* module_of(const TrialConfig& config);
/// The kinds of a catalog.
std::vector<std::string> kinds_of(std::string_view catalog);
/// Likewise, as a text: "adapter, lora or prefix".
std::string kinds_text(std::string_view catalog);

/// The built-in tasks: GLUE's eight, polarity and valence of the four snippet sets, and two text
/// tasks (WMT16 Romanian to English, XSum).
std::span<const TaskDeclaration> tasks();
/// The built-in task with that name, or nullptr.
const TaskDeclaration* find_task(std::string_view name);

/// The default configuration of a kind: TrialConfig's initialisers with the row's defaults. Throws
/// std::invalid_argument for an unknown kind.
TrialConfig default_config(std::string_view kind, std::string_view catalog = {});

/// base::nearest_word for candidates that are strings.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

/// `a section (nearest: base)`: the expected thing, with the known word nearest to `word` if one is
/// similar.
std::string with_nearest(std::string_view wanted, std::string_view word,
                         std::span<const std::string> known);

}  // namespace petlab::sweeps
