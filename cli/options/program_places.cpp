#include "cli/options/program_places.h"

#include <system_error>

namespace petlab::cli {

std::filesystem::path next_to_this_program(const char* name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

}  // namespace petlab::cli
