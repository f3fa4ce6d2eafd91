#include "orchestrator/launching/worker_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab::orchestrator;
using petlab::testing::TempDir;

namespace {

struct Places {
  Places() {
    for (const char* name : {"bin/runner", "a folder/my worker"}) {
      ::chmod(folder.write(name, "#!/bin/sh\n").c_str(), 0755);
    }
    folder.write("script.py", "");
    ::chmod((folder.path() / "script.py").c_str(), 0644);
  }
  WorkerCommand find(const std::string& named) const {
    return find_worker(named, (folder.path() / "bin").string());
  }
  std::string problem(const std::string& named) const {
    try {
      find(named);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "none";
  }
  TempDir folder;
};

}  // namespace

TEST_CASE("A worker is a program by path or name, and its path may contain spaces",
          "[orchestrator]") {
  const Places places;
  const WorkerCommand named = places.find("runner");
  CHECK(named.program == places.folder.path() / "bin/runner");
  CHECK(named.arguments.empty());
  CHECK(named.check_program() == places.folder.path() / "bin/runner-check");
  const std::string spaced = (places.folder.path() / "a folder/my worker").string();
  CHECK(places.find(spaced).program == spaced);
  CHECK(places.find(spaced).text() == spaced);
}

TEST_CASE("A worker may have arguments, quoted as in a shell", "[orchestrator]") {
  const Places places;
  const std::string script = (places.folder.path() / "script.py").string();
  const WorkerCommand worker =
      places.find(fmt::format("runner -u  '{}' \"two words\" a\\ b '' --x=\"1 2\" it\\'s", script));
  CHECK(worker.program == places.folder.path() / "bin/runner");
  CHECK(worker.arguments ==
        std::vector<std::string>{"-u", script, "two words", "a b", "", "--x=1 2", "it's"});
  CHECK(worker.arguments_and("-").back() == "-");
  CHECK(worker.arguments_and("-").size() == 8);
  CHECK(worker.check_program().empty());
  // Its printed form is read back.
  CHECK(places.find(worker.text()).arguments == worker.arguments);
  CHECK(places.find(fmt::format("'{}/a folder/my worker' x", places.folder.path().string()))
            .program.filename() == "my worker");
}

TEST_CASE("Arguments that name files become absolute, others do not change", "[orchestrator]") {
  const Places places;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(places.folder.path());
  const WorkerCommand worker = places.find("runner ./script.py script.py bin none.py -");
  std::filesystem::current_path(before);
  const std::string script = (places.folder.path() / "script.py").string();
  CHECK(worker.arguments == std::vector<std::string>{script, script, "bin", "none.py", "-"});
}

TEST_CASE("An error names the worker that cannot be started", "[orchestrator]") {
  const Places places;
  const std::string script = (places.folder.path() / "script.py").string();
  CHECK(places.problem("none") ==
        "--worker is 'none', must be a program's path, or its name on PATH, followed by its "
        "arguments");
  CHECK(places.problem("") ==
        "--worker is '', must be a program's path, or its name on PATH, followed by its arguments");
  CHECK(places.problem(script) ==
        fmt::format(
            "--worker is '{0}', which is not executable; for a script: --worker \"python3 {0}\"",
            script));
  CHECK(places.problem(script + " x") ==
        fmt::format("--worker is '{} x', which is not executable", script));
  CHECK(places.problem("runner 'x") ==
        "--worker is runner 'x, must have a closing ' after the opening one");
}
