#pragma once

#include <stdexcept>

namespace petlab::reports {

/// What went wrong while a report was made: a folder that cannot be written, a database without
/// what the report asks for. Subject, what was found, what was wanted.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::reports
