#pragma once

#include <stdexcept>

namespace petlab::trainer {

/// What is wrong with a user's file, or with reading or writing it: names the file and, where it
/// applies, the line or tensor, what was found and what was wanted.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::trainer
