#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "sweeps/setting_reader.h"
#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

/// Reads the section `search`, a group, and draws its points at random (Bergstra and Bengio 2012,
/// "Random Search for Hyper-Parameter Optimization"). Draws that repeat an earlier one are left out
/// and noted in the draft. Problems go to `problems`.
Axis read_search(const base::YamlNode& node, SettingReader& reader, SweepDraft& draft,
                 base::FileProblems& problems);

/// `log(LOW, HIGH)` or `uniform(LOW, HIGH)`, with the numbers as written. LOW < HIGH, and LOW > 0
/// for log.
struct SearchRange {
  bool is_log = false;
  std::string low, high;
};
/// Absent if the text does not begin like a range. Throws std::invalid_argument, with what is
/// wrong, if it does but is none.
std::optional<SearchRange> search_range_from(std::string_view text);

/// A number from [0, 1) for point `index` of a field. It depends on nothing else, so more points or
/// fields leave the others as they are.
double search_draw(std::int64_t search_seed, std::string_view field, std::int64_t index);
/// The value at `draw` in the range, as it would be written in the file: a real number with four
/// significant digits, or a whole one from LOW to HIGH.
std::string value_in_range(const SearchRange& range, bool is_whole, double draw);

}  // namespace petlab::sweeps
