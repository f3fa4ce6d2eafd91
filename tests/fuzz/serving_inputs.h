#pragma once

#include <string_view>

namespace petlab::fuzz {

/// Processes the bytes of a request as petlab serve does: by the header's parser with its limits,
/// then by the gate. Aborts if something is granted without its token.
void http_request(std::string_view text);

}  // namespace petlab::fuzz
