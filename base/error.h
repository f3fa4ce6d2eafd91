#pragma once

#include <stdexcept>

namespace petlab::base {

/// A file cannot be found, read, written or understood. The message names it, what was found and
/// what was wanted.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::base
