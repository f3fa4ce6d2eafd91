#pragma once

#include "orchestrator/host/error.h"

namespace petlab::exchange {

/// Refuses an exchange: names the folder, file or archive, what was found and what was expected.
using orchestrator::Error;

}  // namespace petlab::exchange
