#pragma once

#include <stdexcept>
#include <string>

namespace petlab::metrics {

/// What is wrong with an input of a metric: a file that cannot be read, line counts that differ,
/// invalid UTF-8, values that are no numbers. The message names the file and line where there is
/// one. What the user wrote on a command line or in a field is std::invalid_argument instead.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace petlab::metrics
