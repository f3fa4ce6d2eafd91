#include <cstddef>
#include <cstdint>

#include "tests/fuzz/files_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  petlab::fuzz::spiece_model({reinterpret_cast<const char*>(data), size});
  return 0;
}
