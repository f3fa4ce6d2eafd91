#pragma once

#include <stdexcept>

namespace petlab::results {

/// What went wrong with the database: subject, what was found, what was wanted.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::results
