#pragma once

#include <stdexcept>
#include <string>

namespace petlab::fetch {

/// A download that cannot be had, read or written.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The server cannot be reached at all: no network, a wrong name, nobody there.
struct NoConnection : Error {
  using Error::Error;
};

/// The server answered with a status of 400 or more. `code` is the hub's own word for it
/// (X-Error-Code: "RepoNotFound", "GatedRepo", "RevisionNotFound", "EntryNotFound"), or empty.
struct HttpError : Error {
  HttpError(const std::string& message, long status_of_answer, std::string hub_code)
      : Error(message), status(status_of_answer), code(std::move(hub_code)) {}
  long status;
  std::string code;
};

/// The user asked to end; what was downloaded so far is kept.
struct Interrupted : Error {
  Interrupted() : Error("interrupted") {}
};

}  // namespace petlab::fetch
