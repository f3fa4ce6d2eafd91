#pragma once

#include <filesystem>

namespace petlab::cli {

/// Where a program of that name lies, or would lie, that was built with this one.
std::filesystem::path beside_this_program(const char* name);

}  // namespace petlab::cli
