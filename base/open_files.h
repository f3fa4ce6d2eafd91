#pragma once

#include <cstddef>

namespace petlab::base {

/// Raises this process's soft limit of open files to the hard limit and returns it. Child processes
/// get the former limit back (restore_open_file_limit), because select() does not support high
/// descriptors.
std::size_t raise_open_file_limit();
/// Restores the former limit in a child before exec. Async-signal-safe.
void restore_open_file_limit();

/// The number of open descriptors of this process.
std::size_t open_file_count();

/// Closes the descriptors from `first` to `last`, or marks them as close-on-exec. Also works
/// without close_range (Linux before 5.9). Async-signal-safe.
enum class CloseFiles { now, on_exec };
void close_files(int first, int last, CloseFiles when);

}  // namespace petlab::base
