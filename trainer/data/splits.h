#pragma once

#include <cstdint>
#include <vector>

namespace petlab::trainer {

/// Returns the same numbers as torch.randperm(n, generator=torch.Generator().manual_seed(seed)) on
/// the CPU.
std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed);

}  // namespace petlab::trainer
