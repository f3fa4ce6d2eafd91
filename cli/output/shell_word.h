#pragma once

#include <string>

namespace petlab::cli {

/// The text as one word of a POSIX shell: as it is, or in single quotes where that needs them.
std::string shell_word(const std::string& text);

}  // namespace petlab::cli
