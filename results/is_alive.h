#pragma once

#include <functional>

#include "results/attempt.h"

namespace petlab::results {

/// Whether an open attempt may still be at work. The database cannot tell: callers pass what they
/// know, as StateContext::alive.
using IsAlive = std::function<bool(const AttemptFacts&)>;

}  // namespace petlab::results
