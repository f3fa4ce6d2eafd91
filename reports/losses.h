#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// The split under which reports select the losses that workers tell while they train.
inline constexpr char kProgressSplit[] = "progress";
inline constexpr char kProgressLoss[] = "loss";

/// Whether the definition selects that split, so that add_losses() is needed.
bool wants_losses(const Definition& definition);

/// Adds the loss curves of the trials, also of those that run, as scores `loss` of the split
/// `progress` and of all of a trial's tasks. Throws results::Error for a database that cannot be
/// read.
void add_losses(const std::filesystem::path& database, const std::vector<std::string>& sweeps,
                Dataset& data);

}  // namespace petlab::reports
