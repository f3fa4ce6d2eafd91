#pragma once

#include <optional>
#include <span>
#include <string>

namespace petlab::questions {

/// Draws the values as bars from ▁ (lowest) to █ (highest), at most `width` of them. If there are
/// more values, each bar is the mean of several. An undefined or infinite value is a space; if all
/// are equal, they are ▄.
std::string sparkline(std::span<const std::optional<double>> values, std::size_t width = 40);

}  // namespace petlab::questions
