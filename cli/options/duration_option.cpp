#include "cli/options/duration_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

namespace petlab::cli {
namespace {

// Seconds; longer durations would exceed the clock's range.
CLI::Validator within_a_century() {
  return CLI::Validator(
      [](const std::string& seconds) {
        const double value = std::strtod(seconds.c_str(), nullptr);
        return value >= 0 && value <= 36500 * 86400.0
                   ? std::string()
                   : fmt::format("found {} s, expected 0s to 36500d", seconds);
      },
      "");
}

}  // namespace

// CLI11 would read a unit without a number as 1, and a minus sign as a large unsigned number.
CLI::Validator number_first(const std::string& wanted) {
  return CLI::Validator(
      [wanted](const std::string& text) {
        return text.find_first_of("0123456789.") == 0
                   ? std::string()
                   : fmt::format("found {}, expected {}", text, wanted);
      },
      "");
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, double& seconds,
                          const std::string& help) {
  return app.add_option(name, seconds, help)
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{
              {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}},
          CLI::AsNumberWithUnit::CASE_SENSITIVE, "DURATION"))
      ->transform(number_first("a duration such as 90s"))  // runs before the other transform
      ->check(within_a_century())
      ->type_name("TIME");
}

}  // namespace petlab::cli
