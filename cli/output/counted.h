#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::cli {

/// "1 trial", "3 trials".
std::string counted(std::int64_t count, std::string_view what);
/// The same for a word that takes more than an s.
std::string counted(std::int64_t count, std::string_view one, std::string_view several);

/// "512 bytes", "1.4 MiB".
std::string bytes_text(std::uintmax_t bytes);

}  // namespace petlab::cli
