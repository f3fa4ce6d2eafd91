#include "cli/setup/schema.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>

#include "base/files.h"
#include "cli/options/sweep_arguments.h"
#include "reports/definition_schema.h"
#include "sweeps/schema.h"

namespace petlab::cli {

std::function<int()> make_schema(CLI::App& app, Streams streams) {
  struct SchemaArguments {
    std::string of;
    std::string output;
    std::string worker;
  };
  const auto arguments = std::make_shared<SchemaArguments>();
  app.add_option("OF", arguments->of, "what the file defines")
      ->required()
      ->check(CLI::IsMember({"sweep", "task", "report"}));
  app.add_option("--worker", arguments->worker,
                 "with the kinds and fields that this worker declares")
      ->type_name("COMMAND");
  app.add_option("--output", arguments->output, "the file to write (default: standard output)");
  return [arguments, streams] {
    if (!arguments->worker.empty() && arguments->of != "sweep") {
      throw std::invalid_argument(
          fmt::format("--worker: found {}, expected it with sweep only", arguments->of));
    }
    const std::string catalog = catalog_of_worker(arguments->worker, sweeps::process_environment());
    const std::string text = (arguments->of == "sweep"  ? sweeps::sweep_schema(catalog)
                              : arguments->of == "task" ? sweeps::task_schema()
                                                        : reports::definition_schema())
                                 .dump(2) +
                             "\n";
    if (arguments->output.empty()) {
      streams.out << text;
    } else {
      base::write_file_atomically(arguments->output, text);
    }
    return kDone;
  };
}

}  // namespace petlab::cli
