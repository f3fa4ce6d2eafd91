#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reports/render.h"
#include "reports/table.h"

namespace petlab::reports {

/// Writes the table in each of `formats` (with an extension) to `folder`/NAME.EXTENSION, making the
/// folder; a file is replaced as a whole or not at all. Returns the paths. Throws reports::Error
/// naming the file and why.
std::vector<std::filesystem::path> write_files(const Table& table,
                                               const std::filesystem::path& folder,
                                               std::span<const Format* const> formats);

}  // namespace petlab::reports
