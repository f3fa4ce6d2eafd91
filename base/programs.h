#pragma once

#include <string>
#include <vector>

namespace petlab::base {

/// All paths where a program of that name could be on `search_path` (like PATH), in order;
/// absolute, and not checked for existence.
std::vector<std::string> places_on_path(const std::string& name, const std::string& search_path);

/// The first of these paths that is executable; empty if there is none.
std::string find_program(const std::string& name, const std::string& search_path);

}  // namespace petlab::base
