#include "base/shallow_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_line.h"
#include "base/shown.h"

namespace petlab::base {
namespace {

struct TooDeep {};

template <typename Json, typename Input>
Json parse(Input&& input, bool throws) {
  const auto shallow = [](int depth, typename Json::parse_event_t event, const Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMaxJsonDepth) throw TooDeep{};
    return true;
  };
  return Json::parse(std::forward<Input>(input), shallow, throws);
}

// Few texts have that many brackets. All others are parsed without a callback per value.
bool may_be_deep(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) >
         kMaxJsonDepth;
}

template <typename Json>
Json parse_or_throw(std::string_view text, const std::string& name) {
  if (!may_be_deep(text)) return Json::parse(text);
  try {
    return parse<Json>(text, true);
  } catch (const TooDeep&) {
    throw Error(fmt::format("{}: must have at most {} levels of nesting", name, kMaxJsonDepth));
  }
}

template <typename Json, typename Input>
Json parse_or_none(Input&& input) {
  try {
    return parse<Json>(std::forward<Input>(input), false);
  } catch (const TooDeep&) {
    return Json(Json::value_t::discarded);
  }
}

}  // namespace

nlohmann::json parse_shallow_json(std::string_view text, const std::string& name) {
  return parse_or_throw<nlohmann::json>(text, name);
}

nlohmann::ordered_json parse_shallow_ordered_json(std::string_view text, const std::string& name) {
  return parse_or_throw<nlohmann::ordered_json>(text, name);
}

std::string json_problem(const std::exception& error) {
  std::string_view what = error.what();
  // The library's text starts with an error number in brackets and `parse error at `.
  if (const std::size_t bracket = what.find("] "); bracket != what.npos)
    what.remove_prefix(bracket + 2);
  for (const std::string_view before : {"parse error at ", "line 1, "}) {
    if (what.starts_with(before)) what.remove_prefix(before.size());
  }
  constexpr std::string_view kToken = "last read: '";
  const std::size_t token = what.find(kToken);
  if (token == what.npos) return printable(what.substr(0, 200));
  const std::size_t begin = token + kToken.size();
  const std::size_t end = std::max(what.rfind('\''), begin);
  return fmt::format("{}last read: {}",
                     printable(what.substr(0, std::min<std::size_t>(token, 200))),
                     in_quotes(what.substr(begin, end - begin)));
}

nlohmann::json shallow_json_or_none(std::string_view text) {
  if (!may_be_deep(text)) return nlohmann::json::parse(text, nullptr, false);
  return parse_or_none<nlohmann::json>(text);
}

nlohmann::json shallow_json_or_none(std::istream& in) { return parse_or_none<nlohmann::json>(in); }

nlohmann::ordered_json shallow_ordered_json_or_none(std::string_view text) {
  if (!may_be_deep(text)) return nlohmann::ordered_json::parse(text, nullptr, false);
  return parse_or_none<nlohmann::ordered_json>(text);
}

}  // namespace petlab::base
