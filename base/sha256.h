#pragma once

#include <nettle/sha2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::base {

/// Computes a SHA-256 over bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  void add(const char* data, std::size_t size);
  /// Returns "sha256:" and 64 hexadecimal digits. Call it only once.
  std::string finish();
  /// Returns the digest's bytes instead. Call it only once.
  std::array<std::uint8_t, 32> finish_bytes();

 private:
  sha256_ctx context_;
};

/// "sha256:" and 64 hexadecimal digits of `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace petlab::base
