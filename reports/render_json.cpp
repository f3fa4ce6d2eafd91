#include <nlohmann/json.hpp>

#include "reports/render.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

// null: undefined, or too few samples for it.
Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json_cell(const Cell& cell, const Head& column) {
  static constexpr const char* kKinds[] = {"missing", "undefined", "number", "text"};
  Json json;
  json["column"] = column.key;
  json["kind"] = kKinds[static_cast<int>(cell.kind)];
  if (cell.kind == Cell::Kind::text) {
    json["text"] = cell.text;
  } else {
    json["mean"] = number(cell.mean);
    json["deviation"] = number(cell.deviation);
    json["standard_error"] = number(cell.standard_error);
    json["ci_low"] = number(cell.ci_low);
    json["ci_high"] = number(cell.ci_high);
  }
  json["n"] = cell.n();
  json["planned"] = cell.planned;
  json["undefined"] = cell.undefined();
  if (!cell.reason.empty()) json["reason"] = cell.reason;
  if (cell.published) json["published"] = *cell.published;
  if (cell.published_text) json["published"] = *cell.published_text;
  if (cell.difference) json["difference"] = *cell.difference;
  if (!cell.erratum.empty()) json["erratum"] = cell.erratum;
  json["partial"] = cell.partial();
  json["stale"] = cell.stale;
  json["numerics"] = cell.numerics;
  json["mixed_fields"] = cell.mixed_fields;
  Json samples = Json::array();
  for (const Sample& sample : cell.samples) {
    samples.push_back(
        {{"seed", sample.seed}, {"value", number(sample.value)}, {"trials", sample.trial_ids}});
  }
  json["samples"] = std::move(samples);
  return json;
}

}  // namespace

std::string to_json(const Table& table) {
  Json json;
  json["v"] = 1;
  json["report"] = table.name;
  json["about"] = table.about;
  json["confidence"] = table.confidence;
  json["published"] = table.published_title.empty() ? Json(nullptr) : Json(table.published_title);
  json["sweeps"] = Json::array();
  for (const SweepProgress& progress : table.progress) {
    Json states = Json::object();
    for (const auto& [state, count] : progress.states) states[state] = count;
    json["sweeps"].push_back(
        {{"sweep", progress.sweep}, {"trials", progress.trials}, {"states", states}});
  }
  json["columns"] = Json::array();
  for (const Head& column : table.columns) {
    json["columns"].push_back({{"key", column.key}, {"name", column.name}});
  }
  json["rows"] = Json::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Head& head = table.rows[row];
    Json cells = Json::array();
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      cells.push_back(to_json_cell(table.cells[row][column], table.columns[column]));
    }
    json["rows"].push_back(
        {{"key", head.key}, {"group", head.group}, {"name", head.name}, {"cells", cells}});
  }
  json["notes"] = table.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace petlab::reports
