#pragma once

#include <stdexcept>

namespace petlab::reports {

/// An error while creating a report, such as a folder that cannot be written or a database that
/// lacks requested data. Messages state the subject, what was found and what was expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A figure was not drawn, because the drawing tool is missing or failed.
class NotDrawn : public Error {
 public:
  using Error::Error;
};

}  // namespace petlab::reports
