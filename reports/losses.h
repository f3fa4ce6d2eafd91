#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"

namespace petlab::reports {

/// The split by which reports select the losses that workers report during training.
inline constexpr char kProgressSplit[] = "progress";
inline constexpr char kProgressLoss[] = "loss";

/// True if the definition selects that split and so needs add_losses().
bool wants_losses(const Definition& definition);

/// Adds the loss curves of all trials, including running ones, as scores `loss` of the split
/// `progress`, for all tasks of a trial together. Throws results::Error for an unreadable database.
void add_losses(const std::filesystem::path& database, const std::vector<std::string>& sweeps,
                Dataset& data);

}  // namespace petlab::reports
