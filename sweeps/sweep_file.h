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
#include "sweeps/early_stop.h"
#include "sweeps/identity.h"
#include "sweeps/locations.h"
#include "sweeps/study.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// One trial of a sweep.
struct SweepTrial {
  TrialId id;
  /// The variants to which the trial belongs: several if variants coincide, none if the sweep has
  /// no variants.
  std::vector<std::string> variants;
  TrialConfig config;
  /// Trials with a higher priority run first. It does not affect the trial's id. If coinciding
  /// variants differ, the highest counts.
  std::int64_t priority = 0;
  /// The GPUs of its worker, likewise.
  std::int64_t gpus = 1;
  /// Absent if the kind of module has no storage formula.
  std::optional<metrics::ModuleStorage> storage;
  std::optional<double> bls_bits;
  /// For a solved size, its deviation from the requested storage ("bottleneck 22 for the storage of
  /// propetl: 0.8 % less"); else empty.
  std::string storage_note;
};

/// The properties of a sweep apart from its trials.
struct SweepHead {
  std::string name;
  std::string about;
  std::filesystem::path file;
  /// "sha256:…" of the file's bytes, and the bytes.
  std::string digest;
  std::string text;
  /// The settings of --set in order, such as `training.epochs=1`.
  std::vector<std::string> overrides;
  /// Notes on possible slips: a rule that never holds, a field that no trial uses.
  std::vector<std::string> notes;
  /// Names of variants in the order of the file.
  std::vector<std::string> variants;
  /// When trials that lose are stopped; absent: never.
  std::optional<EarlyStopRule> early_stop;
  /// The id of the worker's catalog; empty: the built-in one.
  std::string catalog;
  /// By TrialConfig::backbone. A backbone of a worker's catalog may have no known shape.
  std::map<std::string, std::filesystem::path> backbone_folders;
  std::map<std::string, BackboneShape> backbone_shapes;
  std::map<std::string, std::string> backbone_digests;
};

/// A sweep file, expanded.
struct Sweep : SweepHead {
  /// In the order of variants, zip and grid (the last key varies fastest), with unique ids.
  std::vector<SweepTrial> trials;
  /// The declarations of all tasks that trials use, by name.
  std::map<std::string, TaskDeclaration> tasks;
  /// Only of a search by TPE.
  std::optional<Study> study;
};

/// Maximum number of trials in a sweep, before `exclude`.
inline constexpr std::int64_t kMaxTrials = 1'000'000;

/// Reads and expands a sweep file (docs/reference/sweep-files.md). Reads the config.json of
/// backbones and computes digests of their weights (cached under locations.cache()); reads no data.
/// Throws base::FileProblemsError with all problems, sweeps::Error if the file cannot be read.
/// `overrides` are those of --set: `training.epochs=1` sets a field for every trial as if the file
/// did, so trial ids change accordingly. Throws std::invalid_argument for invalid overrides, and if
/// they make two trials equal. `catalog` is the id of the worker's catalog, which was learned
/// (sweeps/worker_catalog.h); empty: the built-in one. `points` is the folder that records the
/// points of a search by TPE (sweeps/study.h); empty: none is recorded.
Sweep load_sweep(const std::filesystem::path& file, const Locations& locations,
                 std::span<const std::string> overrides = {}, std::string_view catalog = {},
                 const std::filesystem::path& points = {});

/// The name of the sweep in a file, without expanding or checking the rest. Throws
/// base::FileProblemsError if the file is not YAML or has no valid name, sweeps::Error if it cannot
/// be read.
std::string sweep_name(const std::filesystem::path& file);

}  // namespace petlab::sweeps
