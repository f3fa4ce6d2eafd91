#include <cstddef>
#include <cstdint>

#include "tests/fuzz/orchestrator_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  petlab::fuzz::slurm_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
