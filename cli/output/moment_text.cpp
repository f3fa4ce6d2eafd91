#include "cli/output/moment_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace petlab::cli {

std::string moment_text(double seconds) {
  if (!(std::fabs(seconds) < 1e11)) return fmt::format("{}", seconds);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace petlab::cli
