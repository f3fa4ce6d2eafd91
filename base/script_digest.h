#pragma once

#include <string>
#include <string_view>

namespace petlab::base {

/// The SHA-256 of a script as a page's policy names it: "sha256-" and base64 with its padding.
std::string script_digest(std::string_view script);

}  // namespace petlab::base
