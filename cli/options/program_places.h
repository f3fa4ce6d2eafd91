#pragma once

#include <filesystem>

namespace petlab::cli {

/// The path of a program built together with this one, whether or not it exists.
std::filesystem::path next_to_this_program(const char* name);

}  // namespace petlab::cli
