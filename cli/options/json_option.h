#pragma once

#include <string>

namespace CLI {
class App;
}

namespace petlab::cli {

/// `--format` for a command that prints for people (`table`) or in one JSON format, and `--json`,
/// which is short for the latter. `json` outlives the app.
void add_json_option(CLI::App& app, bool& json, const std::string& help,
                     const std::string& format = "json");

}  // namespace petlab::cli
