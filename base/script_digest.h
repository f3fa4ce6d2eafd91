#pragma once

#include <string>
#include <string_view>

namespace petlab::base {

/// A script's SHA-256 in the form of a Content-Security-Policy: "sha256-" and padded base64.
std::string script_digest(std::string_view script);

}  // namespace petlab::base
