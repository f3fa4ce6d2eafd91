#pragma once

#include "results/error.h"

namespace petlab::results {

/// Another process holds a database on a network file system, where only one may write at a time.
class DatabaseHeld : public Error {
 public:
  using Error::Error;
};

}  // namespace petlab::results
