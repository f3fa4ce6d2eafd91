#pragma once

#include <stdexcept>

namespace petlab::reports {

/// What went wrong while a report was made: a folder that cannot be written, a database without
/// what the report asks for. Subject, what was found, what was wanted.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A figure was not drawn: what draws it is not in place, or failed.
class NotDrawn : public Error {
 public:
  using Error::Error;
};

}  // namespace petlab::reports
