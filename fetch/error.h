#pragma once

#include <stdexcept>
#include <string>

namespace petlab::fetch {

/// A download that failed, or a file of it that cannot be read or written.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The server cannot be reached: no network, a wrong name, or no server at that address.
struct NoConnection : Error {
  using Error::Error;
};

/// The server answered with a status of 400 or more. `code` is the hub's error code (X-Error-Code:
/// "RepoNotFound", "GatedRepo", "RevisionNotFound", "EntryNotFound"), or empty.
struct HttpError : Error {
  HttpError(const std::string& message, long status_of_answer, std::string hub_code)
      : Error(message), status(status_of_answer), code(std::move(hub_code)) {}
  long status;
  std::string code;
};

/// The user interrupted the download. Downloaded parts are kept.
struct Interrupted : Error {
  Interrupted() : Error("interrupted") {}
};

}  // namespace petlab::fetch
