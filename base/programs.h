#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace petlab::base {

/// All paths where a program of that name could be on `search_path` (like PATH), in order;
/// absolute, and not checked for existence.
std::vector<std::string> places_on_path(const std::string& name, const std::string& search_path);

/// The first of these paths that is executable; empty if there is none.
std::string find_program(const std::string& name, const std::string& search_path);

/// The path of a program built together with this one, whether or not it exists.
std::filesystem::path next_to_this_program(const char* name);

}  // namespace petlab::base
