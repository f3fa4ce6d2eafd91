#pragma once

#include <cstdint>
#include <functional>

namespace petlab::testing {

/// How many statements SQLite begins to run meanwhile, on connections that are opened within
/// `body`; one that is run again counts again.
std::int64_t statements_in(const std::function<void()>& body);

}  // namespace petlab::testing
