#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/sweep_file.h"

namespace CLI {
class App;
}

namespace petlab::cli {

/// Adds --only, which may be repeated.
void add_only_option(CLI::App& app, std::vector<std::string>& only);

/// The indices in `sweep.trials` of the trials that meet all conditions of --only, in order;
/// std::nullopt if there are none. Conditions are as in --where, on words of results/words.h that a
/// trial has before it runs (fields, `user.KEY`, `task`: any of its tasks, `variant`: any of its
/// names, `trial_id`, sizes). Throws std::invalid_argument for conditions that do not parse, words
/// of attempts or scores, texts that no trial has (naming the nearest one) and conditions that no
/// trial meets.
std::optional<std::vector<std::size_t>> only_trials(const sweeps::Sweep& sweep,
                                                    const std::vector<std::string>& only);

/// The same sweep with only the trials at `places`.
sweeps::Sweep part_of(const sweeps::Sweep& sweep, const std::vector<std::size_t>& places);

}  // namespace petlab::cli
