#include "base/script_digest.h"

#include <nettle/base64.h>

#include "base/sha256.h"

namespace petlab::base {

std::string script_digest(std::string_view script) {
  Sha256 hash;
  hash.add(script.data(), script.size());
  const auto digest = hash.finish_bytes();
  std::string base64(BASE64_ENCODE_RAW_LENGTH(digest.size()), '\0');
  base64_encode_raw(base64.data(), digest.size(), digest.data());
  return "sha256-" + base64;
}

}  // namespace petlab::base
