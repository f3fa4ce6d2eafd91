#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
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

/// `{match_storage_of: VARIANT}` in place of a value.
struct MatchStorage {
  std::string variant;
};

/// What a key of a sweep file is about.
enum class Target {
  field,     ///< a row of fields()
  tasks,     ///< `task` and `tasks`; the value is the list of names
  user,      ///< `user.NAME`
  priority,  ///< of the trial in this sweep, no part of it
  variant,   ///< in conditions only
};

/// `key: value`, checked on its own.
struct Setting {
  Target target = Target::field;
  const Field* field = nullptr;
  std::string name;  // dotted; for user without "user."
  std::variant<nlohmann::json, MatchStorage> value;
  int line = 0;
};

/// One list of a grid, or one group of lists of a zip: a trial takes one of its points.
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
  std::string name;  // empty: a sweep without variants
  int line = 0;
  std::vector<Setting> settings;
};

/// In place of a trial's place in a sweep: a combination that is none.
inline constexpr std::size_t kNoTrial = static_cast<std::size_t>(-1);

/// A sweep file read, every value checked on its own, nothing expanded.
struct SweepDraft {
  std::string name;
  std::string about;
  int base_line = 1;
  std::vector<Setting> base;
  /// Of every trial, from beside the file (sweeps/overrides.h): nothing else sets these fields.
  std::vector<Setting> overrides;
  std::vector<Variant> variants;  // at least one
  std::vector<Axis> axes;         // zip groups, then grid lists
  std::vector<Rule> when;
  std::vector<Rule> exclude;
  /// Fields of which some value was refused: what follows from that is not reported again.
  std::set<std::string> refused;
  std::map<std::string, TaskDeclaration> declared;  // the user's own tasks, by name
  std::map<std::string, std::filesystem::path> backbone_folders;
  std::map<std::string, BackboneShape> backbone_shapes;
  std::map<std::string, std::string> backbone_digests;
};

/// The name that a sweep file gives its sweep. Returns an empty text and adds to `problems` if
/// there is no valid name.
std::string read_sweep_name(const base::YamlNode& root, base::FileProblems& problems);

/// Reads the sections of a sweep file, and what they name: backbones (shape and digest) and
/// declared tasks. Problems are added to `problems`.
SweepDraft read_sweep(const base::YamlNode& root, const std::filesystem::path& file,
                      const Locations& locations, base::FileProblems& problems);

/// base, zip, grid, variant, when, solve sizes, exclude, validate, merge equal ids. Adds to
/// `problems`, and fills trials, notes and tasks. More than `max_trials` combinations are a
/// problem. `placed`, where given, gets the place of each combination's trial in sweep.trials,
/// variant by variant and point by point; kNoTrial where it is excluded or wrong.
void expand_sweep(const SweepDraft& draft, std::int64_t max_trials, base::FileProblems& problems,
                  Sweep& sweep, std::vector<std::size_t>* placed = nullptr);

/// load_sweep for text that was read already; `file` stands in messages, and what the text names
/// relatively is looked for beside it.
Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials,
                      std::span<const std::string> overrides = {});

}  // namespace petlab::sweeps
