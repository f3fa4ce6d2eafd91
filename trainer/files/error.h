#pragma once

#include <stdexcept>
#include <string>

namespace petlab::trainer {

/// An error in a user's file, or in reading or writing it. It names the file and, if applicable,
/// the line or tensor, what was found and what was expected. The message is one line of UTF-8:
/// other bytes and control characters, such as in names, are replaced by U+FFFD.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
};

}  // namespace petlab::trainer
