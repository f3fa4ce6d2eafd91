#pragma once

#include <string_view>

#include "sweeps/catalog.h"

namespace petlab::testing {

/// The storage formula of a built-in kind.
inline const metrics::StorageFormula* formula_of(std::string_view kind) {
  return sweeps::find_module(kind)->formula();
}

}  // namespace petlab::testing
