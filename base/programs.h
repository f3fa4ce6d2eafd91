#pragma once

#include <string>
#include <vector>

namespace petlab::base {

/// Where a program of that name would lie on `search_path` (like PATH), in its order; absolute,
/// whether or not there is anything.
std::vector<std::string> places_on_path(const std::string& name, const std::string& search_path);

/// The first of them that can be executed; empty: there is none.
std::string find_program(const std::string& name, const std::string& search_path);

}  // namespace petlab::base
