#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::sweeps {

/// `log(LOW, HIGH)` or `uniform(LOW, HIGH)`, with the numbers as written. LOW < HIGH, and LOW > 0
/// for log.
struct SearchRange {
  bool is_log = false;
  std::string low, high;
};

/// A field of a search: it has a range, or a list of choices.
struct SearchedField {
  std::string name;  // dotted
  std::optional<SearchRange> range;
  bool is_whole = false;    // only with a range
  std::size_t choices = 0;  // only without a range
};

/// A point of a search: one text for each field, in the order of the file. It is the value as it
/// would be written, or for a list the index of the choice.
using SearchPoint = std::vector<std::string>;

/// A search by TPE, whose later points depend on the results of earlier ones.
struct Study {
  /// 16 hexadecimal digits. Equal for sweeps that search the same space with the same seed, startup
  /// and metric, and whose first points have the same trials. `trials` and `per_round` may differ.
  std::string id;
  std::vector<SearchedField> fields;
  std::int64_t trials = 1;  ///< the number of points when the search is over
  std::int64_t startup = 10;
  std::int64_t per_round = 4;
  std::int64_t seed = 0;
  std::string metric;  ///< empty: the metrics by which the tasks select their best step
  /// The points known so far: drawn at random up to `startup`, then as recorded.
  std::vector<SearchPoint> points;
  /// Indices into Sweep::trials, by point; none if all were excluded. A point that repeats an
  /// earlier one has the same.
  std::vector<std::vector<std::size_t>> trials_of;

  bool is_complete() const { return static_cast<std::int64_t>(points.size()) >= trials; }
};

/// What a sampler adds to a study in one round.
struct SuggestedPoints {
  std::vector<SearchPoint> points;
  std::int64_t told = 0;  ///< the number of points whose results it was given
  std::uint32_t seed = 0;
  std::string version;  ///< of Optuna
};

/// The study's file in a runs folder's folder `sweeps` (docs/reference/runs-folder.md).
std::filesystem::path points_file(const std::filesystem::path& sweeps, std::string_view study);
/// The points that the file records, in order; none if it is missing. Throws sweeps::Error if it is
/// not the file of such a study.
std::vector<SearchPoint> recorded_points(const std::filesystem::path& sweeps, const Study& study);
/// Adds a round to the study's file and syncs it. `sweep` is the sweep's name, for people. The
/// caller holds a lock, and must have read the file since it took it.
void record_points(const std::filesystem::path& sweeps, const Study& study, std::string_view sweep,
                   const SuggestedPoints& suggested);

}  // namespace petlab::sweeps
