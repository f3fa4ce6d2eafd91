#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

/// Sets fields for every trial of a draft, whatever the file says of them: each text is
/// `training.epochs=1`, the value written as in a sweep file (of `tasks` a list). What base,
/// variants, zip, grid and `when` set of that field is taken out, and a note of it goes to `notes`.
/// Throws std::invalid_argument, naming --set, for a text that is no KEY=VALUE, a key that is no
/// field, a value that the field does not take, and a field that is set twice.
void apply_overrides(SweepDraft& draft, std::span<const std::string> overrides,
                     const std::filesystem::path& file, const Locations& locations,
                     std::vector<std::string>& notes);

/// Throws std::invalid_argument where two combinations of variant and point that were two trials
/// without the overrides are one with them. `before` and `after` say for each combination which
/// trial it is, kNoTrial where it is none (expand_sweep()).
void check_overrides_merge_nothing(std::span<const std::string> overrides,
                                   std::span<const std::size_t> before,
                                   std::span<const std::size_t> after,
                                   const std::filesystem::path& file);

}  // namespace petlab::sweeps
