#include "sweeps/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/files.h"
#include "base/shallow_json.h"
#include "sweeps/error.h"

namespace petlab::sweeps {
namespace {

using nlohmann::ordered_json;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

bool is_choice(const std::string& text, std::size_t choices) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && number < choices;
}

SearchPoint point_from(const ordered_json& values, const Study& study) {
  SearchPoint point;
  for (const SearchedField& field : study.fields) {
    point.push_back(values.at(field.name).get<std::string>());
    if (!field.range && !is_choice(point.back(), field.choices)) {
      throw Error(fmt::format("{} is {}, must be the index of a choice", field.name, point.back()));
    }
  }
  return point;
}

}  // namespace

std::filesystem::path points_file(const std::filesystem::path& sweeps, std::string_view study) {
  return sweeps / fmt::format("{}.points", study);
}

std::vector<SearchPoint> recorded_points(const std::filesystem::path& sweeps, const Study& study) {
  const std::filesystem::path file = points_file(sweeps, study.id);
  const std::optional<std::string> text = base::read_file_if_any(file, kMostBytes);
  std::vector<SearchPoint> points;
  if (!text) return points;
  std::istringstream lines(*text);
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("{}:{}", file.string(), number);
    try {
      const ordered_json json = base::parse_shallow_ordered_json(line, where);
      if (number == 1 && json.at("v") != 1) {
        throw Error(fmt::format("v is {}, must be 1: written by a newer petlab", json["v"].dump()));
      }
      if (json.contains("point")) points.push_back(point_from(json.at("values"), study));
    } catch (const ordered_json::exception& error) {
      throw Error(fmt::format("{}: cannot be understood: {}", where, base::json_problem(error)));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", where, error.what()));
    }
  }
  return points;
}

void record_points(const std::filesystem::path& sweeps, const Study& study, std::string_view sweep,
                   const SuggestedPoints& suggested) {
  const std::filesystem::path file = points_file(sweeps, study.id);
  std::string text =
      base::read_file_if_any(file, kMostBytes)
          .value_or(
              ordered_json{{"v", 1}, {"study", study.id}, {"sweep", sweep}, {"by", "tpe"}}.dump() +
              "\n");
  text += ordered_json{{"told", suggested.told},
                       {"seed", suggested.seed},
                       {"sampler", "optuna.samplers.TPESampler"},
                       {"optuna", suggested.version}}
              .dump() +
          "\n";
  std::size_t index = study.points.size();
  for (const SearchPoint& point : suggested.points) {
    ordered_json values = ordered_json::object();
    for (std::size_t i = 0; i < point.size(); ++i) values[study.fields[i].name] = point[i];
    text += ordered_json{{"point", index++}, {"values", values}}.dump() + "\n";
  }
  base::write_file_atomically(file, text);
}

}  // namespace petlab::sweeps
