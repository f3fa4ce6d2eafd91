#include "reports/rank_diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "reports/text.h"
#include "reports/vega.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kScaleHeight = 34;  // with its label
constexpr double kAxisHeight = 22;   // numbers above the axis
constexpr double kBarStep = 9;
constexpr double kLabelStep = 20;
constexpr double kDiagramGap = 14;
constexpr double kEnd = 0.012;  // overhang of a bar, as part of the axis

constexpr int kAxisWidth = 440;
constexpr int kNameRoom = 300;  // longer names are cut
constexpr int kRankRoom = 46;   // average rank next to the axis
constexpr double kAxisNameGap = 14;
constexpr double kSoft = 0.7;  // opacity of what is not a name
constexpr double kCharacter = 6.6;
constexpr const char* kLineColour = "#667085";  // readable on light and dark pages
constexpr const char* kBarColour = "#0072B2";

// All marks share this scale and their row's `y`, a height in pixels.
Json x_of(const char* field, double last) {
  return {{"field", field},
          {"type", "quantitative"},
          {"axis", nullptr},
          {"scale", {{"domain", {1, last}}, {"nice", false}, {"zero", false}, {"padding", 12}}}};
}

// The specification of one diagram. Each row of data is a mark, with a layer for each kind.
class Specification {
 public:
  Specification(const Ranks& ranks, const RankDiagram& diagram)
      : ranks_(ranks),
        diagram_(diagram),
        last_(static_cast<double>(ranks.variants.size())),
        average_(ranks.ranking.ranks.average_ranks) {}

  Json make() {
    add_axis();
    if (has_scale(ranks_)) add_scale();
    add_labels();
    add_bars();
    Json result = {{"width", kAxisWidth}, {"height", diagram_.height}};
    result["data"] = {{"values", std::move(rows_)}};
    result["layer"] = std::move(layers_);
    // The page scales figures, but these heights are fixed, and names need room at the sides.
    result["usermeta"] = {{"nameRoom", name_room()}};
    return result;
  }

 private:
  void row(const char* part, Json content) {
    content["part"] = part;
    rows_.push_back(std::move(content));
  }

  // A layer of all rows of a part.
  Json& layer(const char* part, Json mark) {
    Json encoding;
    encoding["x"] = x_of("x", last_);
    encoding["y"] = {{"field", "y"},
                     {"type", "quantitative"},
                     {"axis", nullptr},
                     {"scale",
                      {{"domain", {0, diagram_.height}},
                       {"range", {0, diagram_.height}},
                       {"nice", false},
                       {"zero", false}}}};
    const Json only = {{"filter", {{"field", "part"}, {"equal", part}}}};
    layers_.push_back({{"transform", Json::array({only})},
                       {"mark", std::move(mark)},
                       {"encoding", std::move(encoding)}});
    return layers_.back()["encoding"];
  }

  static Json line(double width) {
    return {{"type", "rule"}, {"color", kLineColour}, {"strokeWidth", width}};
  }
  static Json text(const char* align, const char* baseline, double dx = 0) {
    return {{"type", "text"}, {"align", align}, {"baseline", baseline}, {"dx", dx}};
  }

  void add_axis() {
    const double y = diagram_.axis_y;
    row("axis", {{"x", 1}, {"x2", last_}, {"y", y}});
    // About ten numbers, with a short tick between two.
    const int step = std::max(1, static_cast<int>(last_) / 10);
    for (int rank = 1; rank <= static_cast<int>(last_); ++rank) {
      const bool number = (rank - 1) % step == 0;
      row("tick", {{"x", rank}, {"y", y}, {"y2", y - (number ? 6 : 3)}});
      if (number) row("number", {{"x", rank}, {"y", y - 8}, {"text", fmt::format("{}", rank)}});
      if (step == 1 && rank < static_cast<int>(last_)) {
        row("tick", {{"x", rank + 0.5}, {"y", y}, {"y2", y - 3}});
      }
    }
    row("axis name", {{"x", last_}, {"y", y - 8}, {"text", "average rank"}});
    layer("axis", line(1.2))["x2"] = {{"field", "x2"}};
    layer("tick", line(1.2))["y2"] = {{"field", "y2"}};
    layer("number", text("center", "bottom"))["text"] = {{"field", "text"}, {"type", "nominal"}};
    Json name = text("left", "bottom", kAxisNameGap);
    name["opacity"] = kSoft;
    layer("axis name", std::move(name))["text"] = {{"field", "text"}, {"type", "nominal"}};
  }

  void add_scale() {
    const double y = diagram_.scale_y;
    const double difference = ranks_.ranking.ranks.critical_difference;
    row("scale", {{"x", 1}, {"x2", 1 + difference}, {"y", y}});
    for (const double end : {1.0, 1 + difference}) {
      row("scale end", {{"x", end}, {"y", y - 4}, {"y2", y + 4}});
    }
    row("scale name", {{"x", 1 + difference / 2},
                       {"y", y - 6},
                       {"text", fmt::format("CD = {:.2f}", difference)}});
    layer("scale", line(1.2))["x2"] = {{"field", "x2"}};
    layer("scale end", line(1.2))["y2"] = {{"field", "y2"}};
    layer("scale name", text("center", "bottom"))["text"] = {{"field", "text"},
                                                             {"type", "nominal"}};
  }

  void add_labels() {
    for (std::size_t at = 0; at < diagram_.labels.size(); ++at) {
      const RankDiagram::Label& label = diagram_.labels[at];
      row("stem", {{"x", average_[at]}, {"y", diagram_.axis_y}, {"y2", label.y}});
      row(label.left ? "left" : "right", {{"x", average_[at]},
                                          {"y", label.y},
                                          {"rank", number_text(average_[at], 2)},
                                          {"name", printable(ranks_.variants[at].head.name)}});
    }
    layer("stem", line(1))["y2"] = {{"field", "y2"}};
    add_side("left", 0, "right", -1);
    add_side("right", "width", "left", 1);
  }

  // `end` is the end of the axis on this side, `away` the direction away from it.
  void add_side(const char* part, const Json& end, const char* align, double away) {
    layer(part, line(1))["x2"] = {{"value", end}};
    for (const auto& [field, distance, room] :
         {std::tuple("rank", 6, kRankRoom), std::tuple("name", kRankRoom, kNameRoom)}) {
      Json mark = text(align, "middle", away * distance);
      mark["limit"] = room;
      if (std::string_view(field) == "rank") mark["opacity"] = kSoft;
      Json& encoding = layer(part, std::move(mark));
      encoding["x"] = {{"value", end}};
      encoding["text"] = {{"field", field}, {"type", "nominal"}};
      const Json name = {{"field", "name"}, {"type", "nominal"}, {"title", "variant"}};
      const Json rank = {{"field", "rank"}, {"type", "nominal"}, {"title", "average rank"}};
      encoding["tooltip"] = Json::array({name, rank});
    }
  }

  void add_bars() {
    if (diagram_.bars.empty()) return;
    for (const RankDiagram::Bar& bar : diagram_.bars) {
      std::vector<std::string> names;
      for (const std::size_t member : bar.members) {
        names.push_back(printable(ranks_.variants[member].head.name));
        if (diagram_.has_dots) row("dot", {{"x", average_[member]}, {"y", bar.y}});
      }
      row("bar", {{"x", bar.from},
                  {"x2", bar.to},
                  {"y", bar.y},
                  {"names", fmt::format("{}", fmt::join(names, ", "))}});
    }
    Json& bars = layer("bar", {{"type", "rule"}, {"color", kBarColour}, {"strokeWidth", 4}});
    bars["x2"] = {{"field", "x2"}};
    bars["tooltip"] = {
        {"field", "names"}, {"type", "nominal"}, {"title", "no significant difference"}};
    if (!diagram_.has_dots) return;
    layer(
        "dot",
        {{"type", "point"}, {"filled", true}, {"opacity", 1}, {"color", kBarColour}, {"size", 60}});
  }

  // Room for names and ranks on both sides.
  int name_room() const {
    int widest[2] = {0, 0};
    for (std::size_t at = 0; at < diagram_.labels.size(); ++at) {
      int& side = widest[diagram_.labels[at].left ? 0 : 1];
      const int width = display_width(printable(ranks_.variants[at].head.name));
      side = std::max(side, std::min(kNameRoom, static_cast<int>(kCharacter * width)));
    }
    return widest[0] + widest[1] + 2 * kRankRoom + 12;
  }

  const Ranks& ranks_;
  const RankDiagram& diagram_;
  const double last_;
  const std::vector<double>& average_;
  Json rows_ = Json::array();
  Json layers_ = Json::array();
};

// Wraps a caption to the width of the picture.
Json wrapped_lines(const std::vector<std::string>& lines, int width) {
  Json all = Json::array();
  for (const std::string& line : lines) {
    for (const std::string& part : wrapped(line, width)) all.push_back(part);
  }
  return all;
}

}  // namespace

bool has_scale(const Ranks& ranks) {
  return ranks.test == PairTest::nemenyi && ranks.ranking.differs;
}

RankDiagram lay_out(const Ranks& ranks) {
  RankDiagram diagram;
  const std::vector<double>& average = ranks.ranking.ranks.average_ranks;
  const std::size_t variants = average.size();
  diagram.scale_y = kScaleHeight - kDiagramGap;
  diagram.axis_y = kAxisHeight + (has_scale(ranks) ? kScaleHeight : 0);
  const double overhang = kEnd * static_cast<double>(variants - 1);
  std::vector<double> ends;  // of the last bar at each height
  for (const std::vector<std::size_t>& group : ranks.groups()) {
    RankDiagram::Bar bar{average[group.front()] - overhang, average[group.back()] + overhang, 0,
                         group};
    const auto free = std::find_if(ends.begin(), ends.end(),
                                   [&](double end) { return end + overhang < bar.from; });
    bar.y = diagram.axis_y + kDiagramGap + kBarStep * static_cast<double>(free - ends.begin());
    if (free == ends.end()) {
      ends.push_back(bar.to);
    } else {
      *free = bar.to;
    }
    if (group.back() - group.front() + 1 > group.size()) diagram.has_dots = true;
    diagram.bars.push_back(std::move(bar));
  }
  const double first =
      diagram.axis_y + 2 * kDiagramGap + kBarStep * static_cast<double>(ends.size());
  const std::size_t left = (variants + 1) / 2;
  for (std::size_t at = 0; at < variants; ++at) {
    // The outermost variant of each side is on top, so that no line crosses another.
    const std::size_t row = at < left ? at : variants - 1 - at;
    diagram.labels.push_back({at < left, first + kLabelStep * static_cast<double>(row)});
  }
  diagram.height = first + kLabelStep * static_cast<double>(left - 1) + kDiagramGap;
  return diagram;
}

std::string to_vega_lite(const Ranks& ranks) {
  constexpr int kCaptionWidth = 108;  // characters
  Json specification = {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"}};
  specification["title"] = {{"text", printable(ranks.title)},
                            {"anchor", "start"},
                            {"fontSize", 14},
                            {"offset", 14},
                            {"subtitle", wrapped_lines(caption(ranks), kCaptionWidth)},
                            {"subtitleColor", kLineColour}};
  if (ranks.has_ranks()) {
    specification.update(Specification(ranks, lay_out(ranks)).make());
  } else {
    specification["width"] = kAxisWidth;
    specification["height"] = 1;
    specification["data"] = {{"values", Json::array()}};
    specification["mark"] = "text";
    specification["usermeta"] = {{"nameRoom", 0}};
  }
  specification["config"] = {{"font", "Helvetica, Arial, sans-serif"},
                             {"text", {{"fontSize", 12}}},
                             {"view", {{"stroke", nullptr}}}};
  return specification.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace petlab::reports
