#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace petlab::base {

/// The offset of the first invalid UTF-8 sequence (overlong forms, surrogates and values above
/// U+10FFFF are invalid); std::nullopt if the text is valid.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace petlab::base
