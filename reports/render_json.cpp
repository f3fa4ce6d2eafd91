#include <nlohmann/json.hpp>

#include "reports/cell_text.h"
#include "reports/render.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

// null if undefined, or if there are too few samples.
Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json_cell(const Cell& cell, const Head& column) {
  static constexpr const char* kKinds[] = {"missing", "undefined", "number", "text"};
  const Measured& measured = cell.measured;
  Json json;
  json["column"] = column.key;
  json["kind"] = kKinds[static_cast<int>(measured.kind)];
  if (measured.kind == Cell::Kind::text) {
    json["text"] = measured.text;
  } else {
    json["mean"] = number(measured.mean);
    json["deviation"] = number(measured.deviation);
    json["standard_error"] = number(measured.standard_error);
    json["ci_low"] = number(measured.ci_low);
    json["ci_high"] = number(measured.ci_high);
  }
  json["n"] = measured.n();
  json["planned"] = measured.planned;
  json["undefined"] = measured.undefined();
  if (!measured.reason.empty()) json["reason"] = measured.reason;
  if (cell.published.number) json["published"] = *cell.published.number;
  if (cell.published.text) json["published"] = *cell.published.text;
  if (const auto difference = cell.difference()) json["difference"] = *difference;
  if (!cell.published.erratum.empty()) json["erratum"] = cell.published.erratum;
  if (const auto& comparison = cell.standing.comparison) {
    json["comparison"] = {{"n", comparison->pairs},
                          {"p", *comparison->p},
                          {"adjusted_p", *comparison->adjusted_p},
                          {"significant", cell.standing.differs()}};
  }
  json["partial"] = measured.partial();
  json["stale"] = cell.trials.stale;
  json["numerics"] = cell.trials.numerics;
  json["mixed_code"] = cell.trials.mixed_code;
  json["mixed_fields"] = cell.trials.mixed_fields;
  Json samples = Json::array();
  for (const Sample& sample : measured.samples) {
    samples.push_back(
        {{"seed", sample.seed}, {"value", number(sample.value)}, {"trials", sample.trial_ids}});
  }
  json["samples"] = std::move(samples);
  return json;
}

Json json_columns(const Table& table) {
  Json columns = Json::array();
  for (const Head& column : table.columns) {
    columns.push_back({{"key", column.key}, {"name", column.name}});
  }
  return columns;
}

Json json_rows(const Table& table) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Head& head = table.rows[row];
    Json cells = Json::array();
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      cells.push_back(to_json_cell(table.cells[row][column], table.columns[column]));
    }
    rows.push_back(
        {{"key", head.key}, {"group", head.group}, {"name", head.name}, {"cells", cells}});
  }
  return rows;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json optional_p(const std::optional<metrics::RankTest>& test) {
  return test ? Json(test->p) : Json(nullptr);
}

// The tests and groups of ranks, with variants by their keys.
Json json_tests(const Ranks& ranks) {
  const questions::Ranking& ranking = ranks.ranking;
  const auto key = [&](std::size_t at) { return ranks.variants[at].head.key; };
  const auto keys = [&](const std::vector<std::vector<std::size_t>>& groups) {
    Json all = Json::array();
    for (const std::vector<std::size_t>& group : groups) {
      Json& of_group = all.emplace_back(Json::array());
      for (const std::size_t at : group) of_group.push_back(key(at));
    }
    return all;
  };
  Json pairs = Json::array();
  for (const metrics::VariantPair& pair : ranking.ranks.pairs) {
    pairs.push_back({{"variants", {key(pair.first), key(pair.second)}},
                     {"nemenyi_p", pair.nemenyi_p},
                     {"wilcoxon_p", pair.wilcoxon_p},
                     {"holm_p", pair.holm_p}});
  }
  return {{"level", ranking.level},
          {"test", ranks.test == PairTest::nemenyi ? "nemenyi" : "wilcoxon"},
          {"friedman_p", optional_p(ranking.ranks.friedman)},
          {"iman_davenport_p", optional_p(ranking.ranks.iman_davenport)},
          {"differs", ranking.differs},
          {"critical_difference", ranking.ranks.critical_difference},
          {"nemenyi_groups", keys(ranking.ranks.nemenyi_groups)},
          {"wilcoxon_groups", keys(ranking.ranks.wilcoxon_groups)},
          {"pairs", std::move(pairs)}};
}

Json to_json_ranks(const Ranks& ranks) {
  const Table table = table_of_ranks(ranks);
  return {{"kind", "ranks"},
          {"key", ranks.key},
          {"title", ranks.title},
          {"missing", text_or_null(ranks.ranking.missing)},
          {"tasks", ranks.ranking.tasks},
          {"left_out", ranks.ranking.left_out},
          {"tests", ranks.has_ranks() ? json_tests(ranks) : Json(nullptr)},
          {"caption", caption(ranks)},
          {"specification", Json::parse(to_vega_lite(ranks))},
          {"columns", json_columns(table)},
          {"rows", json_rows(table)},
          {"notes", ranks.notes}};
}

Json to_json_section(const Section& section) {
  if (const auto* ranks = std::get_if<Ranks>(&section)) return to_json_ranks(*ranks);
  if (const auto* table = std::get_if<Table>(&section)) {
    return {{"kind", "table"},
            {"key", table->key},
            {"title", table->title},
            {"published", text_or_null(table->published_title)},
            {"columns", json_columns(*table)},
            {"rows", json_rows(*table)}};
  }
  const auto& figure = std::get<Figure>(section);
  const Table points = table_of_points(figure);
  return {{"kind", "figure"},
          {"key", figure.key},
          {"title", figure.title},
          {"published", figure.published_titles},
          {"specification", Json::parse(to_vega_lite(figure))},
          {"columns", json_columns(points)},
          {"rows", json_rows(points)},
          {"notes", figure.notes}};
}

}  // namespace

std::string to_json(const Report& report) {
  // A report of one table is that table's object, the format from before sections existed.
  const auto* table =
      report.sections.size() == 1 ? std::get_if<Table>(&report.sections.front()) : nullptr;
  Json json;
  json["v"] = 1;
  json["report"] = report.name;
  json["about"] = report.about;
  json["confidence"] = Table().confidence;
  if (table != nullptr) json["published"] = text_or_null(table->published_title);
  json["sweeps"] = Json::array();
  for (const SweepProgress& progress : report.progress) {
    Json states = Json::object();
    for (const auto& [state, count] : progress.states) states[state] = count;
    json["sweeps"].push_back(
        {{"sweep", progress.sweep}, {"trials", progress.trials}, {"states", states}});
  }
  if (table != nullptr) {
    json["columns"] = json_columns(*table);
    json["rows"] = json_rows(*table);
  } else {
    json["sections"] = Json::array();
    for (const Section& section : report.sections) {
      json["sections"].push_back(to_json_section(section));
    }
  }
  json["notes"] = report.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace petlab::reports
