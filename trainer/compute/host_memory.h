#pragma once

#include <optional>

namespace petlab::trainer {

/// Starts a new peak of this process's memory on the host. First returns freed memory to the
/// system, which would otherwise count towards the new peak.
void begin_host_memory();

/// The peak since then, in MiB; std::nullopt if the kernel does not say.
std::optional<double> peak_host_memory_mib();

}  // namespace petlab::trainer
