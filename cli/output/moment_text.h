#pragma once

#include <string>

namespace petlab::cli {

/// Seconds since 1970 as `2026-11-23 03:10:00 UTC`; as a number where they are far off.
std::string moment_text(double seconds);

}  // namespace petlab::cli
