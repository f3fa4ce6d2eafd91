#include "trainer/files/error.h"

#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

std::string printable(const std::string& message) {
  constexpr char32_t kReplacement = 0xFFFD;
  std::string result;
  result.reserve(message.size());
  for (std::size_t position = 0; position < message.size();) {
    const char32_t c = next_code_point(message, position);
    append_utf8(c < 0x20 || c == 0x7f ? kReplacement : c, result);
  }
  return result;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(printable(message)) {}

}  // namespace petlab::trainer
