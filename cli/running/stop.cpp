#include "cli/running/stop.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "base/shown.h"
#include "cli/options/trial_arguments.h"
#include "orchestrator/recovery/control.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {
namespace {

struct StopArguments : StoredArguments {
  bool now = false;
};

int stop(const StopArguments& arguments, Streams streams) {
  const std::filesystem::path runs = arguments.runs_path();
  auto running = orchestrator::running_orchestrators(runs, orchestrator::this_host());
  if (!arguments.file.empty()) {
    const std::string name = sweeps::sweep_name(arguments.file);
    std::erase_if(running, [&](const auto& one) { return one.sweep != name; });
  }
  if (running.empty()) streams.out << "no petlab run is active in " << runs.string() << "\n";
  int code = kDone;
  for (const auto& one : running) {
    const std::string who =
        fmt::format("petlab run of sweep {} (process {} on {})", base::printable(one.sweep),
                    one.pid, base::printable(one.host));
    if (orchestrator::ask_to_stop(one, arguments.now)) {
      streams.out << who
                  << (arguments.now ? ": asked to checkpoint and stop\n"
                                    : ": asked to finish its running trials and exit\n");
    } else {
      streams.err << who << ": cannot be reached from this machine; run petlab stop on that one\n";
      code = kSomeFailed;
    }
  }
  return code;
}

}  // namespace

std::function<int()> make_stop(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<StopArguments>();
  add_file_argument(app, *arguments, streams);
  app.add_flag("--now", arguments->now, "write checkpoints and stop instead of finishing trials");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return stop(*arguments, streams); };
}

}  // namespace petlab::cli
