#pragma once

#include <string_view>

namespace petlab::fuzz {

/// The list of an archive is refused, or names only files of a runs folder and reads back. Throws
/// std::logic_error if that does not hold.
void archive_list(std::string_view input);

}  // namespace petlab::fuzz
