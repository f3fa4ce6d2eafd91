#pragma once

#include <string>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace petlab::cli {

/// An option whose value is a time, 0 to a century: `90`, `90s`, `30m`, `2h`, `1d`, `10ms`.
CLI::Option* add_duration(CLI::App& app, const std::string& name, double& seconds,
                          const std::string& help);

/// Rejects values that do not begin with a number; use with transforms that accept a unit alone.
CLI::Validator number_first(const std::string& wanted);

}  // namespace petlab::cli
