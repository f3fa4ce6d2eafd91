#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

/// Sets fields for every trial of a draft, regardless of the file. Each text is
/// `training.epochs=1`, with the value as in a sweep file (for `tasks` a list). Settings of the
/// field in base, variants, zip, grid and `when` are removed, with a note in `notes`. Throws
/// std::invalid_argument naming --set for a text that is not KEY=VALUE, an unknown field, an
/// invalid value, and a field that is set twice.
void apply_overrides(SweepDraft& draft, std::span<const std::string> overrides,
                     const std::filesystem::path& file, const Locations& locations,
                     std::vector<std::string>& notes);

/// Throws std::invalid_argument if the overrides merge two trials. `before` and `after` have the
/// index of each combination's trial (variant and point), kNoTrial if there is none
/// (expand_sweep()).
void check_overrides_merge_nothing(std::span<const std::string> overrides,
                                   std::span<const std::size_t> before,
                                   std::span<const std::size_t> after,
                                   const std::filesystem::path& file);

}  // namespace petlab::sweeps
