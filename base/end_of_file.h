#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace petlab::base {

/// The last lines of a file within its last `bytes` bytes, the first of them whole unless it is the
/// only one; empty where the file is not there, is no regular one or cannot be read. A file of
/// gigabytes costs no more.
std::string end_of_file(const std::filesystem::path& file, std::size_t bytes);

}  // namespace petlab::base
