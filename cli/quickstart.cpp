#include "cli/quickstart.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cli/command_line.h"
#include "cli/options/sweep_arguments.h"
#include "cli/setup/doctor_worker.h"
#include "cli/setup/embedded_files.h"
#include "cli/setup/samples.h"
#include "sweeps/locations.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSweepFile = "quickstart.yaml";

// Checked first, because the samples are a large download.
void require_trainer(const sweeps::Environment& environment) {
  if (worker_if_any("", environment).empty()) {
    throw base::Error(
        fmt::format("petlab-trainer is neither next to petlab nor on PATH; {}", trainer_fix()));
  }
  Diagnosis diagnosis;
  look_at_worker("", trainer_fix(), environment, diagnosis);
  for (const Check& check : diagnosis.checks) {
    if (check.state != Check::State::problem) continue;
    throw base::Error(fmt::format("petlab-trainer cannot run: {}; {}", check.found, check.fix));
  }
}

// Keeps an existing file, which the user may have edited.
void write_sweep_file(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw base::Error(fmt::format("{}: cannot create the folder: {}; name another with --in",
                                  folder.string(), error.message()));
  }
  const fs::path file = folder / kSweepFile;
  if (fs::exists(file)) return;
  base::write_file_atomically(file, reports::file_of(embedded_files(), kSweepFile));
}

int run_command(const std::vector<std::string>& words, Streams streams) {
  std::vector<const char*> arguments = {"petlab"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return run(static_cast<int>(arguments.size()), arguments.data(), streams);
}

int quickstart(const std::string& named, Streams streams) {
  const sweeps::Environment environment = sweeps::process_environment();
  const sweeps::Locations locations = sweeps::find_locations(environment);
  require_trainer(environment);
  // Below, a leading dash would begin an option.
  const fs::path folder = named.starts_with("-") ? fs::path(".") / named : fs::path(named);
  write_sweep_file(folder);
  if (const int code = get_samples(locations.home, streams); code != kDone) return code;
  const std::string file = (folder / kSweepFile).string();
  // Named, because PETLAB_DB or a petlab.db in a parent folder would come first.
  const std::string database = (folder / "petlab.db").string();
  streams.out << "== Running " << file
              << " (a few minutes; Ctrl-C stops it, the same command resumes it)" << std::endl;
  if (const int code = run_command({"run", file, "--db", database}, streams); code != kDone) {
    return code;
  }
  streams.out << "== The table, and the figure's points" << std::endl;
  const int code =
      run_command({"report", "quickstart", "--db", database, "--out", folder.string()}, streams);
  if (code != kDone) return code;
  streams.out << "== The page with both: "
              << fs::absolute(folder / "quickstart.html").lexically_normal().string() << std::endl;
  return kDone;
}

}  // namespace

std::function<int()> make_quickstart(CLI::App& app, Streams streams) {
  const auto folder = std::make_shared<std::string>("petlab-quickstart");
  app.add_option("--in", *folder, "the folder of the sweep, its database and its report")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.footer(
      "Downloads an encoder and labelled texts (87 MB) to PETLAB_HOME, writes quickstart.yaml, "
      "trains its 24 trials and reports them. That takes five to ten minutes on two cores. The "
      "same command resumes after Ctrl-C and trains nothing twice. Edit quickstart.yaml to train "
      "more.");
  return [folder, streams] { return quickstart(*folder, streams); };
}

}  // namespace petlab::cli
