#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace petlab::base {

/// The offset of the first byte that begins no valid UTF-8 sequence (overlong forms, surrogates and
/// values above U+10FFFF are invalid); std::nullopt: all is well.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace petlab::base
