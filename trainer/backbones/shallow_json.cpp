#include "trainer/backbones/shallow_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sweeps/json_line.h"
#include "trainer/error.h"

namespace petlab::trainer {

using nlohmann::json;

json parse_shallow_json(std::string_view text, const std::string& file) {
  const auto shallow = [&](int depth, json::parse_event_t event, const json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= sweeps::kMaxJsonDepth) {
      throw Error(
          fmt::format("{}: must have at most {} levels of nesting", file, sweeps::kMaxJsonDepth));
    }
    return true;
  };
  try {
    return json::parse(text, shallow);
  } catch (const json::exception& error) {
    throw Error(fmt::format("{}: is no JSON: {}", file, error.what()));
  }
}

}  // namespace petlab::trainer
