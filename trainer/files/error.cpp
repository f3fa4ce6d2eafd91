#include "trainer/files/error.h"

#include "base/shown.h"

namespace petlab::trainer {

Error::Error(const std::string& message) : std::runtime_error(base::printable(message)) {}

}  // namespace petlab::trainer
