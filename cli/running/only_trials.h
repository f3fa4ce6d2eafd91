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

/// --only, which may be repeated.
void add_only_option(CLI::App& app, std::vector<std::string>& only);

/// The places in `sweep.trials` of the trials for which all conditions of --only hold, in the
/// sweep's order; std::nullopt where none was given. A condition is as in --where: a word of
/// results/words.h that a trial has before it was tried (fields, `user.KEY`, `task`: any of its
/// tasks, `variant`: any of its names, `trial_id`, sizes). Throws std::invalid_argument for what
/// does not parse, a word of attempts or scores, a text that no trial has (naming the nearest that
/// one has), and conditions that no trial meets.
std::optional<std::vector<std::size_t>> only_trials(const sweeps::Sweep& sweep,
                                                    const std::vector<std::string>& only);

/// The same sweep with those trials alone.
sweeps::Sweep part_of(const sweeps::Sweep& sweep, const std::vector<std::size_t>& places);

}  // namespace petlab::cli
