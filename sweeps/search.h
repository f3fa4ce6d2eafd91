#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "sweeps/setting_reader.h"
#include "sweeps/study.h"
#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

/// Reads the section `search`, a group, and draws its points at random (Bergstra and Bengio 2012,
/// "Random Search for Hyper-Parameter Optimization"). By TPE (Bergstra et al. 2011, "Algorithms for
/// Hyper-Parameter Optimization"), those after the first ones are `suggested`, and the study goes
/// into the draft. Points that repeat an earlier one are left out and noted in the draft. Problems
/// go to `problems`.
Axis read_search(const base::YamlNode& node, std::span<const SearchPoint> suggested,
                 SettingReader& reader, SweepDraft& draft, base::FileProblems& problems);

/// Absent if the text does not begin like a range. Throws std::invalid_argument, with what is
/// wrong, if it does but is none.
std::optional<SearchRange> search_range_from(std::string_view text);

/// A number from [0, 1) for point `index` of a field. It depends on nothing else, so more points or
/// fields leave the others as they are.
double search_draw(std::int64_t search_seed, std::string_view field, std::int64_t index);
/// The value at `draw` in the range, as it would be written in the file: a real number with four
/// significant digits, or a whole one from LOW to HIGH.
std::string value_in_range(const SearchRange& range, bool is_whole, double draw);
/// The value of the range that is written like that which is nearest to `value`.
std::string nearest_in_range(const SearchRange& range, bool is_whole, double value);

}  // namespace petlab::sweeps
