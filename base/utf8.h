#pragma once

#include <cstddef>
#include <string_view>

namespace petlab::base {

/// The offset of the first byte that is no valid UTF-8 (overlong forms, surrogates and code points
/// above U+10FFFF are invalid), or std::string_view::npos.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace petlab::base
