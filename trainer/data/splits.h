#pragma once

#include <cstdint>
#include <vector>

namespace petlab::trainer {

/// torch.randperm(n, generator=torch.Generator().manual_seed(seed)) on the CPU, number by number.
std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed);

}  // namespace petlab::trainer
