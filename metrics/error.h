#pragma once

#include <stdexcept>
#include <string>

namespace petlab::metrics {

/// A problem with an input of a metric: an unreadable file, differing line counts, invalid UTF-8,
/// values that are not numbers. The message names file and line if there are any. Errors on a
/// command line or in a field are std::invalid_argument instead.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace petlab::metrics
