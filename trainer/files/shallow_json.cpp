#include "trainer/files/shallow_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/shallow_json.h"
#include "sweeps/error.h"
#include "trainer/files/error.h"

namespace petlab::trainer {

nlohmann::json parse_shallow_json(std::string_view text, const std::string& file) {
  try {
    return base::parse_shallow_json(text, file);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: is not JSON: {}", file, base::json_problem(error)));
  } catch (const sweeps::Error& error) {
    throw Error(error.what());
  }
}

}  // namespace petlab::trainer
