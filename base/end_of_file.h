#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace petlab::base {

/// Returns the last lines of a file from its last `bytes` bytes, without a partial first line
/// unless it is the only one. Empty if the file is missing, unreadable or not a regular file. Reads
/// no more than that, even of a huge file.
std::string end_of_file(const std::filesystem::path& file, std::size_t bytes);

}  // namespace petlab::base
