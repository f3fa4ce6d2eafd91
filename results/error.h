#pragma once

#include <stdexcept>

namespace petlab::results {

/// A problem with the database. The message names it, and what was found and expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::results
