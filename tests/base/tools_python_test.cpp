#include "base/tools_python.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::base {
namespace {

using Words = std::vector<std::string>;

void make_program(const testing::TempDir& folder, const std::string& name) {
  std::filesystem::permissions(folder.write(name, "#!/bin/sh\n"),
                               std::filesystem::perms::owner_all);
}

TEST_CASE("The tools' Python is the environment's, else the one that the set-up installs",
          "[base]") {
  const testing::TempDir folder;
  const std::filesystem::path home = folder.path() / "home";
  const std::filesystem::path programs = folder.path() / "bin";
  const std::string python = (home / "venv/bin/python3").string();
  const ToolsPython missing = tools_python(home, programs);
  CHECK(missing.program == python);
  CHECK(missing.problem() == python + " is missing; scripts/setup.sh installs it");
  CHECK(missing.how_to_install("x") == "scripts/setup.sh installs it");
  CHECK(missing.how_to_add("x") == "install it: " + python + " -m pip install x");

  make_program(folder, "home/venv/bin/python3");
  const ToolsPython of_setup = tools_python(home, programs);
  CHECK(of_setup.problem().empty());
  CHECK(of_setup.arguments("a.py", {"1", "2"}) == Words{"-I", "a.py", "1", "2"});

  // A file that cannot be run is none.
  folder.write("bin/petlab-python", "");
  CHECK(tools_python(home, programs).program == python);
  make_program(folder, "bin/petlab-python");
  const std::string own = (programs / "petlab-python").string();
  for (const std::filesystem::path& any : {home, std::filesystem::path()}) {
    const ToolsPython environment = tools_python(any, programs);
    CHECK(environment.program == own);
    CHECK(environment.problem().empty());
    CHECK(environment.arguments("a.py", {"1"}) == Words{"a.py", "1"});
    CHECK(environment.how_to_install("x") == "install x in the environment of " + own);
    CHECK(environment.how_to_add("x") == environment.how_to_install("x"));
  }
}

TEST_CASE("Without a home, no Python of the current folder is used", "[base]") {
  const testing::TempDir folder;
  const ToolsPython none = tools_python("", folder.path());
  CHECK(none.program.empty());
  CHECK(none.problem() ==
        "none of PETLAB_HOME, XDG_DATA_HOME and HOME is set; set one to place petlab's folder");
}

}  // namespace
}  // namespace petlab::base
