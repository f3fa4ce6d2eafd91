#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "metrics/storage.h"
#include "sweeps/backbone.h"
#include "sweeps/identity.h"
#include "sweeps/locations.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// One trial of a sweep.
struct SweepTrial {
  TrialId id;
  /// The names under which the sweep asks for it: more than one where variants coincide; empty
  /// where the sweep has no variants.
  std::vector<std::string> variants;
  TrialConfig config;
  /// Those with a higher one run first. It belongs to the trial in this sweep: the trial is the
  /// same with another. Where coinciding variants differ, the highest.
  std::int64_t priority = 0;
  /// Absent where the kind of module has no storage formula.
  std::optional<metrics::ModuleStorage> storage;
  std::optional<double> bls_bits;
  /// Where a size was solved: what storage is left over or missing ("bottleneck 22 for the storage
  /// of propetl: 0.8 % less"); empty elsewhere.
  std::string storage_note;
};

/// What a sweep is, whichever of its trials are meant.
struct SweepHead {
  std::string name;
  std::string about;
  std::filesystem::path file;
  /// "sha256:…" of the file's bytes, and those.
  std::string digest;
  std::string text;
  /// What was set beside the file, `training.epochs=1`, in its order.
  std::vector<std::string> overrides;
  /// What is no error but may be a slip: a rule that never holds, a field that no trial uses.
  std::vector<std::string> notes;
  /// Names of variants in the order of the file.
  std::vector<std::string> variants;
  /// By TrialConfig::backbone.
  std::map<std::string, std::filesystem::path> backbone_folders;
  std::map<std::string, BackboneShape> backbone_shapes;
  std::map<std::string, std::string> backbone_digests;
};

/// A sweep file, expanded.
struct Sweep : SweepHead {
  /// In the order of variants, zip and grid (the last key fastest); ids are unique.
  std::vector<SweepTrial> trials;
  /// By name: the declaration of every task that a trial uses.
  std::map<std::string, TaskDeclaration> tasks;
};

/// Most trials of one sweep, before `exclude`.
inline constexpr std::int64_t kMaxTrials = 1'000'000;

/// Reads and expands a sweep file (docs/reference/sweep-files.md). Reads the backbones' config.json
/// and digests their weights (remembered under locations.cache()); reads no data. Throws
/// base::FileProblemsError with every problem, sweeps::Error where the file itself cannot be read.
/// `overrides` are `--set`: each `training.epochs=1` sets a field for every trial, whatever the
/// file says of it; as if that stood in the file, so ids follow. Throws std::invalid_argument for
/// one that cannot be, and where two trials would become the same.
Sweep load_sweep(const std::filesystem::path& file, const Locations& locations,
                 std::span<const std::string> overrides = {});

/// The name of the sweep in a file; nothing is expanded or checked beyond it. Throws
/// base::FileProblemsError if the file is no YAML or has no valid name, sweeps::Error if it cannot
/// be read.
std::string sweep_name(const std::filesystem::path& file);

}  // namespace petlab::sweeps
