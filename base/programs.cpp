#include "base/programs.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace petlab::base {

std::vector<std::string> places_on_path(const std::string& name, const std::string& search_path) {
  std::vector<std::string> places;
  for (std::size_t begin = 0; begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::filesystem::path folder = search_path.substr(begin, end - begin);
    places.push_back(std::filesystem::absolute(folder / name).string());
    begin = end + 1;
  }
  return places;
}

std::string find_program(const std::string& name, const std::string& search_path) {
  for (const std::string& place : places_on_path(name, search_path)) {
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error) && ::access(place.c_str(), X_OK) == 0) {
      return place;
    }
  }
  return {};
}

std::filesystem::path next_to_this_program(const char* name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

}  // namespace petlab::base
