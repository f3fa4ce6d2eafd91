#pragma once

#include <stdexcept>
#include <string>

namespace petlab::trainer {

/// What is wrong with a user's file, or with reading or writing it: names the file and, where it
/// applies, the line or tensor, what was found and what was expected. The message is one line of
/// UTF-8 whatever names the file held: other bytes and control characters are replaced by U+FFFD.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
};

}  // namespace petlab::trainer
