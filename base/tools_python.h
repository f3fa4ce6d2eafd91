#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// The Python interpreter of petlab's own tools, which draw figures and download samples.
struct ToolsPython {
  std::filesystem::path program;  // empty: no folder for it is known
  bool of_environment = false;    // petlab is installed in a Python environment, by pip or uv

  /// The arguments that run a script with the given words.
  std::vector<std::string> arguments(const std::filesystem::path& script,
                                     const std::vector<std::string>& words) const;
  /// Why the interpreter cannot run, and the fix; empty if it can.
  std::string problem() const;
  /// The fix for a missing Python package: "scripts/setup.sh installs it".
  std::string how_to_install(std::string_view package) const;
  /// The fix for a missing Python package that scripts/setup.sh does not install: a command of pip.
  std::string how_to_add(std::string_view package) const;
};

/// Decides which interpreter the tools use: `petlab-python` in the folder of this program, which
/// exists in a Python environment, else the one that scripts/setup.sh installs in `home`
/// (PETLAB_HOME; may be empty).
ToolsPython tools_python(const std::filesystem::path& home);
/// Does the same for a program in the folder `programs`.
ToolsPython tools_python(const std::filesystem::path& home, const std::filesystem::path& programs);

}  // namespace petlab::base
