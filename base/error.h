#pragma once

#include <stdexcept>

namespace petlab::base {

/// A file cannot be found, read, written or understood. The message names it, and what was found
/// and expected.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::base
