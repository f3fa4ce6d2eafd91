#include "base/sha256.h"

namespace petlab::base {

// Uses the small library Nettle, because loading OpenSSL took a third of petlab's startup time.
Sha256::Sha256() { sha256_init(&context_); }

void Sha256::add(const char* data, std::size_t size) {
  sha256_update(&context_, size, reinterpret_cast<const std::uint8_t*>(data));
}

std::string Sha256::finish() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "sha256:";
  for (const std::uint8_t byte : finish_bytes()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::array<std::uint8_t, 32> Sha256::finish_bytes() {
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context_, digest.size(), digest.data());
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

}  // namespace petlab::base
