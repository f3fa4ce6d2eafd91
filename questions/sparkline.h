#pragma once

#include <optional>
#include <span>
#include <string>

namespace petlab::questions {

/// The values as bars, ▁ the lowest and █ the highest, at most `width` of them: where there are
/// more, each is the mean of its part. A space where a value is undefined or not finite; all alike
/// are ▄.
std::string sparkline(std::span<const std::optional<double>> values, std::size_t width = 40);

}  // namespace petlab::questions
