#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "sweeps/fields.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace petlab::sweeps {

/// `{match_storage_of: VARIANT}`, used in place of a value.
struct MatchStorage {
  std::string variant;
};

/// The target of a key in a sweep file.
enum class Target {
  field,     ///< a row of fields()
  tasks,     ///< `task` and `tasks`; the value is the list of names
  user,      ///< `user.NAME`
  priority,  ///< of the trial in this sweep; not part of the trial's identity
  gpus,      ///< `resources.gpus`; likewise
  variant,   ///< in conditions only
};

/// A `key: value` that was checked by itself.
struct Setting {
  Target target = Target::field;
  const Field* field = nullptr;
  std::string name;  // dotted; for user without "user."
  std::variant<nlohmann::json, MatchStorage> value;
  int line = 0;
};

/// A list of a grid, or a group of lists of a zip. Each trial uses one of its points.
struct Axis {
  int line = 0;
  std::vector<std::vector<Setting>> points;
};

/// `key: value` or `key: [value, …]` of an `if` or an `exclude`.
struct Condition {
  Target target = Target::field;
  const Field* field = nullptr;
  std::string name;
  std::vector<nlohmann::json> any_of;
};

/// An entry of `when` or, without settings, of `exclude`.
struct Rule {
  int line = 0;
  std::vector<Condition> conditions;  // all must hold
  std::vector<Setting> set;
};

struct Variant {
  std::string name;  // empty for a sweep without variants
  int line = 0;
  std::vector<Setting> settings;
};

/// In place of a trial's index: the combination has no trial.
inline constexpr std::size_t kNoTrial = static_cast<std::size_t>(-1);

/// A parsed sweep file. Values were checked individually; nothing is expanded.
struct SweepDraft {
  /// The id of the worker's catalog; empty: the built-in one.
  std::string catalog;
  std::string name;
  std::string about;
  int base_line = 1;
  std::vector<Setting> base;
  /// Settings for every trial from --set (sweeps/overrides.h); nothing else sets these fields.
  std::vector<Setting> overrides;
  std::vector<Variant> variants;  // at least one
  std::vector<Axis> axes;         // zip groups, then the search's points, then grid lists
  std::vector<std::string> search_notes;
  std::optional<Study> study;              // of a search by TPE; without trials_of
  int search_line = 0;                     // of a study
  std::vector<std::size_t> search_places;  // on the search's axis, by point of the search
  std::size_t search_axis = 0;             // the search's index in `axes`
  std::vector<Rule> when;
  std::vector<Rule> exclude;
  std::optional<EarlyStopRule> early_stop;
  int early_stop_line = 0;
  /// Fields with a rejected value; consequences are not reported again.
  std::set<std::string> refused;
  std::map<std::string, TaskDeclaration> declared;  // the user's tasks by name
  std::map<std::string, std::filesystem::path> backbone_folders;
  std::map<std::string, BackboneShape> backbone_shapes;
  std::map<std::string, std::string> backbone_digests;
};

/// The name in a sweep file. If there is no valid one, returns an empty text and adds to
/// `problems`.
std::string read_sweep_name(const base::YamlNode& root, base::FileProblems& problems);

/// Reads the sections of a sweep file, its backbones (shape and digest) and its declared tasks.
/// Adds problems to `problems`. `catalog`: as for load_sweep(). `suggested`: the points of a search
/// by TPE after the first ones.
SweepDraft read_sweep(const base::YamlNode& root, const std::filesystem::path& file,
                      const Locations& locations, base::FileProblems& problems,
                      std::string_view catalog = {}, std::span<const SearchPoint> suggested = {});

/// Expands a draft: base, zip, grid, variant, `when`, solved sizes, `exclude`, validation, merging
/// of equal ids. Adds to `problems` and fills trials, notes and tasks. More than `max_trials`
/// combinations are a problem. `placed`, if not null, gets the index in sweep.trials for each
/// combination, by variant and then point; kNoTrial if it is excluded or invalid.
void expand_sweep(const SweepDraft& draft, std::int64_t max_trials, base::FileProblems& problems,
                  Sweep& sweep, std::vector<std::size_t>* placed = nullptr);

/// Like load_sweep() for text in memory. `file` is used in messages and as the base of relative
/// paths.
Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials,
                      std::span<const std::string> overrides = {}, std::string_view catalog = {},
                      const std::filesystem::path& points = {});

}  // namespace petlab::sweeps
