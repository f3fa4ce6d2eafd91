// Workers that do not come to a trial, and what they are started with.
#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

#include "orchestrator/slots.h"
#include "tests/orchestrator/scripted_sweep.h"
#include "tests/support/catch.h"

using namespace petlab;

namespace {

using Scripted = testing::ScriptedSweep;

// An executable shell script beside the sweep; "$W" in it is the scripted worker.
std::string script(const Scripted& sweep, const std::string& text) {
  const auto file = sweep.folder.path() / "worker.sh";
  sweep.folder.write("worker.sh", fmt::format("#!/bin/sh\nW={}\n{}\n",
                                              testing::program("scripted-worker").string(), text));
  ::chmod(file.c_str(), 0755);
  return file.string();
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("A worker keeps the variables that only begin like petlab's", "[orchestrator]") {
  const Scripted sweep("  a: {seed: 1}\n");
  const auto worker = script(sweep, "env >env.txt\nexec \"$W\" \"$@\"");
  CHECK(sweep
            .petlab("run sweep.yaml --worker " + worker,
                    "PETLAB_WORKER_FLAVOUR=mild PETLAB_WORKER=outer")
            .exit_code == 0);
  const std::string environment = content(sweep.folder.path() / "env.txt");
  CHECK(environment.find("PETLAB_WORKER_FLAVOUR=mild\n") != std::string::npos);
  CHECK(environment.find("PETLAB_WORKER=outer\n") == std::string::npos);
}
