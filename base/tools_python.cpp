#include "base/tools_python.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/programs.h"

namespace petlab::base {

std::vector<std::string> ToolsPython::arguments(const std::filesystem::path& script,
                                                const std::vector<std::string>& words) const {
  std::vector<std::string> all;
  // Imports must not depend on the user's environment or the current folder. petlab-python sees to
  // that itself, because with -I it would miss packages installed by `pip install --user`.
  if (!of_environment) all.emplace_back("-I");
  all.push_back(script.string());
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string ToolsPython::problem() const {
  if (program.empty()) {
    return "none of PETLAB_HOME, XDG_DATA_HOME and HOME is set; set one to place petlab's folder";
  }
  if (::access(program.c_str(), X_OK) == 0) return {};
  return fmt::format("{} is missing; scripts/setup.sh installs it", program.string());
}

std::string ToolsPython::how_to_install(std::string_view package) const {
  return of_environment
             ? fmt::format("install {} in the environment of {}", package, program.string())
             : "scripts/setup.sh installs it";
}

std::string ToolsPython::how_to_add(std::string_view package) const {
  return of_environment
             ? how_to_install(package)
             : fmt::format("install it: {} -m pip install {}", program.string(), package);
}

ToolsPython tools_python(const std::filesystem::path& home) {
  return tools_python(home, next_to_this_program("").parent_path());
}

ToolsPython tools_python(const std::filesystem::path& home, const std::filesystem::path& programs) {
  const std::filesystem::path own = programs / "petlab-python";
  if (::access(own.c_str(), X_OK) == 0) return {own, true};
  if (home.empty()) return {};
  return {home / "venv/bin/python3", false};
}

}  // namespace petlab::base
