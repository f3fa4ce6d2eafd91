#pragma once

#include <cstddef>

namespace petlab::base {

/// Raises this process's soft limit of open files to its hard one. Programs that it starts get the
/// former one back (restore_open_file_limit): some use select(), which cannot take high numbers.
/// Returns the limit now.
std::size_t raise_open_file_limit();
/// In a child before exec: the limit as it was before it was raised. Async-signal-safe.
void restore_open_file_limit();

/// Descriptors that this process has open.
std::size_t open_file_count();

/// Closes the descriptors from `first` to `last`, or marks them to be closed by exec. Works without
/// close_range too (Linux before 5.9). Async-signal-safe.
enum class CloseFiles { now, on_exec };
void close_files(int first, int last, CloseFiles when);

}  // namespace petlab::base
