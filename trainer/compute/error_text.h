#pragma once

#include <exception>
#include <string>

namespace petlab::trainer {

/// Returns an exception's message for the user: what(), but for a LibTorch error, whose what() ends
/// with a C++ stack, only the first line. petlab-trainer prints no exception in another way.
std::string message_of(const std::exception& error);

/// Lets LibTorch throw if an allocation on the CPU fails, instead of aborting the process. Call it
/// first in main.
void throw_on_failed_allocation();

}  // namespace petlab::trainer
