#pragma once

#include <nettle/sha2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::base {

/// A SHA-256 over bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(const char* data, std::size_t size);
  /// "sha256:" and 64 hexadecimal digits; once.
  std::string finish();
  /// The digest's bytes instead.
  std::array<std::uint8_t, 32> finish_bytes();

 private:
  sha256_ctx context_;
};

/// "sha256:" and 64 hexadecimal digits of `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace petlab::base
