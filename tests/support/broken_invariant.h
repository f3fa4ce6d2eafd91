#pragma once

#include <functional>
#include <string>

namespace petlab::testing {

/// Runs `action` in a copy of this process. If it breaks an invariant, returns what was found: the
/// part of the message between the place in the source and the advice. Otherwise says how it ended.
std::string broken_invariant(const std::function<void()>& action);

}  // namespace petlab::testing
