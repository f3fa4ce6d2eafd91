#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace petlab::cli {

/// `--format` for a command that prints for people (`table`) or in one JSON format, and `--json`,
/// which is short for the latter. `json` outlives the app.
void add_json_option(CLI::App& app, bool& json, const std::string& help,
                     const std::string& format = "json");

/// `--format` for a command that prints in several formats, `names`, and `--json`, which is short
/// for the one called json. `format` holds the default and outlives the app.
void add_format_option(CLI::App& app, std::string& format, const std::vector<std::string>& names);

}  // namespace petlab::cli
