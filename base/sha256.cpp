#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace petlab::base {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  // Once: EVP_sha256() is looked up anew for each digest, which takes longer than a short one.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (!context_ || sha256 == nullptr || EVP_DigestInit_ex(context_.get(), sha256, nullptr) != 1) {
    throw Error("SHA-256: OpenSSL does not offer it, wanted it");
  }
}

void Sha256::add(const char* data, std::size_t size) {
  EVP_DigestUpdate(context_.get(), data, size);
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "sha256:";
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

}  // namespace petlab::base
