#pragma once

#include <string>
#include <string_view>

namespace petlab::base {

/// True for files that usually hold secrets, by their path: `.env`, `.env.local`, `id_rsa`,
/// `server.pem`, `credentials.json`, `.netrc`, `secrets/prod.yaml`, ….
bool is_secret_file(std::string_view path);

/// True if a text contains a line that looks like a secret: a private key, a token of a known form
/// (`ghp_…`, `hf_…`, `AKIA…`), a password in a URL, or a value that is assigned to a name such as
/// `api_key`, `token` or `password`. Better one too many than one too few.
bool has_secret(std::string_view text);

}  // namespace petlab::base
