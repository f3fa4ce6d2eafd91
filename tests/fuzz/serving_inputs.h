#pragma once

#include <string_view>

namespace petlab::fuzz {

/// What petlab serve does with the bytes of a request: the header's parser with its limits, then
/// the gate. Aborts where something is granted without its token.
void http_request(std::string_view text);

}  // namespace petlab::fuzz
