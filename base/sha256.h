#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace petlab::base {

/// A SHA-256 over bytes that come in pieces.
class Sha256 {
 public:
  /// Throws base::Error where OpenSSL does not offer it.
  Sha256();
  void add(const char* data, std::size_t size);
  /// "sha256:" and 64 hexadecimal digits; once.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// "sha256:" and 64 hexadecimal digits of `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace petlab::base
