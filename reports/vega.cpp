#include "reports/vega.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/text.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

// Okabe and Ito's colours, which are distinguishable with colour blindness, without black, which is
// invisible on dark pages.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#7F7F7F"};

// Legend names. Series with the same name are distinguished by their keys.
class Names {
 public:
  std::string of(const std::string& name, const std::string& key) {
    std::string shown = printable(name);
    if (!seen_.emplace(shown, key).second) shown += " (" + printable(key) + ")";
    all.push_back(shown);
    return shown;
  }
  Json all = Json::array();

 private:
  std::map<std::string, std::string> seen_;
};

Json point_row(const std::string& series, const Figure& figure, const FigurePoint& point) {
  const Measured& measured = point.cell.measured;
  Json row = {{"series", series}, {"source", "measured"}, {"x", point.x}, {"y", *measured.mean}};
  if (const auto bar = error_bar(measured, figure.errors)) {
    row["low"] = bar->low;
    row["high"] = bar->high;
  }
  row["shown"] = number_text(*measured.mean, point.cell.digits);
  row["deviation"] = measured.deviation ? number_text(*measured.deviation, point.cell.digits) : "—";
  row["seeds"] = measured.partial() ? fmt::format("{} of {}", measured.n(), measured.planned)
                                    : fmt::format("{}", measured.n());
  std::vector<std::string> flags;
  if (point.cell.trials.stale) flags.emplace_back("stale");
  for (const auto& [what, names] :
       {std::pair("ran different code: ", &point.cell.trials.mixed_code),
        std::pair("trials differ in ", &point.cell.trials.mixed_fields)}) {
    if (!names->empty()) flags.push_back(what + fmt::format("{}", fmt::join(*names, ", ")));
  }
  row["note"] = flags.empty() ? "—" : printable(fmt::format("{}", fmt::join(flags, "; ")));
  return row;
}

// `largest` is the largest value on the axis.
Json axis(const AxisTitle& title, const char* field, double largest) {
  Json scale = {{"zero", false}, {"padding", 12}};
  // Round ends suit scores, but not a ratio of 1.1 or steps after the last.
  if (field == std::string_view("x")) scale["nice"] = false;
  if (title.log) scale = {{"type", "log"}, {"nice", false}, {"padding", 16}};
  Json axis = {{"field", field},
               {"type", "quantitative"},
               {"title", printable(title.name)},
               {"scale", scale}};
  // Shows 500000 bits as 500k.
  const char* format = largest >= 10'000 ? "~s" : "~g";
  if (title.log) axis["axis"] = {{"format", format}, {"labelOverlap", true}, {"tickCount", 6}};
  return axis;
}

Json only(const char* source) { return {{{"filter", {{"field", "source"}, {"equal", source}}}}}; }

// A horizontal line has no x, deviation or note.
Json tooltip(const Figure& figure, bool of_point) {
  Json shown = Json::array();
  const auto add = [&](const char* field, const std::string& title, const char* type) {
    shown.push_back({{"field", field}, {"type", type}, {"title", title}});
  };
  add("series", "series", "nominal");
  add("source", "source", "nominal");
  if (of_point) {
    add("x", printable(figure.x.name), "quantitative");
    shown.back()["format"] = ".6~g";
  }
  add("shown", printable(figure.y.name), "nominal");
  if (of_point) add("deviation", "± over seeds", "nominal");
  add("seeds", "seeds", "nominal");
  if (of_point) add("note", "note", "nominal");
  return shown;
}

}  // namespace

std::string to_vega_lite(const Figure& figure) {
  Names names;
  Json values = Json::array();
  bool published = false;
  bool measured = false;
  for (const FigureSeries& series : figure.series) {
    const std::string name = names.of(series.name, series.key);
    for (const FigurePoint& point : series.points) {
      measured = true;
      values.push_back(point_row(name, figure, point));
    }
    for (const PublishedPoint& point : series.published) {
      published = true;
      Json row = {{"series", name},
                  {"source", "published"},
                  {"x", point.x},
                  {"y", point.y},
                  {"shown", number_text(point.y, figure.digits)},
                  {"deviation", "—"},
                  {"seeds", "as printed"}};
      row["note"] = printable(point.row + (point.erratum.empty() ? "" : ": " + point.erratum));
      values.push_back(std::move(row));
    }
  }
  for (const HorizontalLine& line : figure.horizontal) {
    const std::string name = names.of(line.name, line.key);
    if (line.cell.measured.is_number()) {
      values.push_back({{"series", name},
                        {"source", "line"},
                        {"y", *line.cell.measured.mean},
                        {"shown", number_text(*line.cell.measured.mean, line.cell.digits)},
                        {"seeds", fmt::format("{}", line.cell.measured.n())}});
    }
    if (line.cell.published.number) {
      values.push_back({{"series", name},
                        {"source", "published line"},
                        {"y", *line.cell.published.number},
                        {"shown", number_text(*line.cell.published.number, figure.digits)},
                        {"seeds", "as printed"}});
    }
  }
  Json scale = {{"domain", names.all}};
  if (names.all.size() <= std::size(kColours)) {
    scale["range"] = Json::array();
    for (std::size_t i = 0; i < names.all.size(); ++i) scale["range"].push_back(kColours[i]);
  } else {
    scale["scheme"] = "tableau20";
  }
  const Json colour = {{"field", "series"},
                       {"type", "nominal"},
                       {"title", nullptr},
                       {"scale", scale},
                       {"legend", {{"orient", "bottom"}, {"columns", 3}, {"labelLimit", 260}}}};
  const auto opacity = [](double full) {
    return Json{{"condition", {{"param", "pick"}, {"empty", true}, {"value", full}}},
                {"value", 0.08}};
  };
  std::map<std::string, double> largest;
  for (const Json& row : values) {
    for (const char* field : {"x", "y"}) {
      if (row.contains(field)) largest[field] = std::max(largest[field], row[field].get<double>());
    }
  }
  const Json x = axis(figure.x, "x", largest["x"]);
  const Json y = axis(figure.y, "y", largest["y"]);
  const auto layer = [&](const char* source, Json mark, double full, bool with_x) {
    Json encoding = Json::object();
    if (with_x) encoding["x"] = x;
    encoding["y"] = y;
    encoding["color"] = colour;
    encoding["opacity"] = opacity(full);
    encoding["tooltip"] = tooltip(figure, with_x);
    return Json{{"transform", only(source)}, {"mark", std::move(mark)}, {"encoding", encoding}};
  };
  // Vega would warn about an axis without range for a layer without points.
  std::map<std::string, bool> present;
  for (const Json& row : values) {
    present[row["source"]] = true;
    if (row.contains("low")) present["bars"] = true;
  }
  Json layers = Json::array();
  const bool many = figure.series.size() > 8;
  const auto add = [&](const char* needs, Json specification) {
    if (present[needs]) layers.push_back(std::move(specification));
  };
  add("measured", layer("measured", {{"type", "line"}, {"strokeWidth", many ? 1.2 : 2}}, 1, true));
  Json bars = layer("measured", {{"type", "rule"}, {"strokeWidth", 1.4}}, 0.8, true);
  bars["transform"].push_back({{"filter", {{"field", "low"}, {"valid", true}}}});
  bars["encoding"]["y"]["field"] = "low";
  bars["encoding"]["y2"] = {{"field", "high"}};
  add("bars", std::move(bars));
  add("published",
      layer("published", {{"type", "line"}, {"strokeWidth", 1.3}, {"strokeDash", {4, 3}}}, 0.75,
            true));
  add("published",
      layer("published", {{"type", "point"}, {"filled", false}, {"size", 46}, {"strokeWidth", 1.4}},
            1, true));
  add("measured",
      layer("measured", {{"type", "point"}, {"filled", true}, {"size", many ? 14 : 36}}, 1, true));
  add("line", layer("line", {{"type", "rule"}, {"strokeWidth", 1.6}}, 1, false));
  add("published line",
      layer("published line", {{"type", "rule"}, {"strokeWidth", 1.3}, {"strokeDash", {8, 4}}}, 0.9,
            false));
  if (layers.empty()) layers.push_back(layer("measured", {{"type", "point"}}, 1, true));
  layers.front()["params"] = {{{"name", "pick"},
                               {"select", {{"type", "point"}, {"fields", {"series"}}}},
                               {"bind", "legend"}}};
  Json title = {{"text", printable(figure.title)}, {"anchor", "start"}, {"fontSize", 14}};
  if (published) {
    title["subtitle"] = measured ? "filled: measured; hollow, dashed: published"
                                 : "hollow, dashed: published; nothing measured yet";
    title["subtitleColor"] = "#667085";
  }
  const Json specification = {
      {"$schema", "https://vega.github.io/schema/vega-lite/v6.json"},
      {"title", title},
      {"width", 480},
      {"height", 300},
      {"data", {{"values", values}}},
      {"layer", layers},
      {"config",
       {{"font", "Helvetica, Arial, sans-serif"},
        {"axis", {{"gridOpacity", 0.5}, {"titleFontWeight", "normal"}, {"titlePadding", 8}}},
        {"view", {{"stroke", nullptr}}}}}};
  return specification.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string specification_of(const Section& section) {
  const auto* ranks = std::get_if<Ranks>(&section);
  return ranks == nullptr ? to_vega_lite(std::get<Figure>(section)) : to_vega_lite(*ranks);
}

}  // namespace petlab::reports
