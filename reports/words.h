#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::reports {

/// `; did you mean X?` with the candidate nearest to `word`; empty if none is similar.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// `a, b, c`.
std::string joined(std::span<const std::string> words);

}  // namespace petlab::reports
