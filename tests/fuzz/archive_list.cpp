#include <cstddef>
#include <cstdint>

#include "tests/fuzz/exchange_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  petlab::fuzz::archive_list({reinterpret_cast<const char*>(data), size});
  return 0;
}
