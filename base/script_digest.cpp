#include "base/script_digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/sha256.h"

namespace petlab::base {

std::string script_digest(std::string_view script) {
  const std::string digits = sha256(script).substr(std::string_view("sha256:").size());
  std::array<unsigned char, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest.at(i) = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  // 44 characters and the zero that OpenSSL writes behind them.
  std::array<unsigned char, 45> base64{};
  const int size = EVP_EncodeBlock(base64.data(), digest.data(), digest.size());
  return "sha256-" + std::string(base64.begin(), base64.begin() + size);
}

}  // namespace petlab::base
