#include "cli/options/json_option.h"

#include <CLI/CLI.hpp>
#include <vector>

namespace petlab::cli {

void add_json_option(CLI::App& app, bool& json, const std::string& help,
                     const std::string& format) {
  CLI::Option* const flag = app.add_flag("--json", json, help);
  app.add_option_function<std::string>(
         "--format", [&json, format](const std::string& name) { json = name == format; },
         "how to print it; --json is short for " + format)
      ->check(CLI::IsMember(std::vector<std::string>{"table", format}))
      ->excludes(flag);
}

}  // namespace petlab::cli
