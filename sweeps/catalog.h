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

/// What an artifact of a kind of module stores.
enum class StorageRule {
  reported,  ///< what the worker reports
  formula,   ///< DeclaredKind::formula
  backbone,  ///< every weight of the backbone
  none,      ///< only heads, which are not counted
};

/// How petlab-trainer's memory for a step depends on the kind (sweeps/memory.h). Formulas know the
/// kind's sizes; d, w, L and T as in storage (metrics/storage.h); Le and Ld, the layers of encoder
/// and decoder; M, the number of prototypes (1 or L).
struct ModuleMemory {
  bool inside_attention = false;  ///< so that the first layer has a gradient
  bool after_attention = false;
  bool after_feed_forward = false;
  /// Numbers that a module in a layer keeps for the backward pass: from i rows of input, q rows of
  /// queries and k rows of keys; g is 1 with a T5, otherwise 0.
  metrics::SizeFormula keeps;
  /// Numbers that a step keeps once.
  metrics::SizeFormula keeps_once;
  /// Positions added to the keys of attention.
  metrics::SizeFormula keys;
  /// The trained tensors from which the stored weights are computed; empty: the stored weights are
  /// trained themselves.
  std::vector<metrics::SizeFormula> trained;
};

/// A kind of module as a worker's catalog declares it (sweeps/worker_catalog.h), or
/// trainer/modules/catalog.json for petlab-trainer's own.
struct DeclaredKind {
  std::string kind;
  std::string help;
  std::vector<std::string> uses;  ///< built-in fields of the group `module` that apply to it
  std::vector<KindDefault> defaults;
  ModuleBackbones backbones = ModuleBackbones::any;
  /// The names of sizes in the kind's formulas. The first is the module's size, which
  /// match_storage_of solves.
  std::vector<metrics::SizeName> sizes;
  StorageRule storage = StorageRule::reported;
  /// Only with StorageRule::formula.
  metrics::StorageFormula formula;
  /// The number of layers with a module; empty: L.
  metrics::SizeFormula layers;
  /// Only petlab-trainer's kinds have the following.
  ModuleMemory memory;
  /// Other libraries' formats for its modules (trainer/artifact/module_formats.h).
  std::vector<std::string> formats;
};

/// A row of the table of modules. trainer/modules/ has a table of the same kinds; a test keeps the
/// two equal.
struct ModuleRow {
  std::string_view kind;
  std::string_view help;
  /// Dotted names of the ModuleConfig fields that apply to this kind, without `module.kind`
  /// (`module.sparsity_ratio` only applies with a mask).
  std::vector<std::string_view> fields;
  /// Defaults that differ from TrialConfig's initialisers.
  std::vector<KindDefault> defaults;
  const DeclaredKind* declared = nullptr;
  /// The id of the worker's catalog that declares the kind; empty: built in. A declared row's
  /// `fields` are all fields of its trials, also those outside `module`.
  std::string_view catalog = {};

  /// True if `fields` contains the field with that dotted name.
  bool has_field(std::string_view name) const;
  /// The field for the module's size, which match_storage_of solves; empty: none.
  std::string_view size_field() const;
  /// The storage formula; nullptr if there is none.
  const metrics::StorageFormula* formula() const;
  /// True for full fine-tuning.
  bool trains_backbone() const { return declared->storage == StorageRule::backbone; }
  /// True if only heads are trained.
  bool trains_head_only() const { return declared->storage == StorageRule::none; }
};

/// The built-in kinds (trainer/modules/catalog.json), then those that workers declare
/// (sweeps/worker_catalog.h).
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
