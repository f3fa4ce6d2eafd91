#pragma once

#include <functional>

#include "results/attempt.h"

namespace petlab::results {

/// True if an open attempt may still be running. The database cannot show this, so callers provide
/// it, as StateContext::alive.
using IsAlive = std::function<bool(const AttemptFacts&)>;

}  // namespace petlab::results
