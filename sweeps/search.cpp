#include "sweeps/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/shown.h"
#include "base/trimmed.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {
namespace {

using base::YamlNode;
using nlohmann::json;

constexpr std::array<std::string_view, 3> kKeys{"trials", "by", "search_seed"};
constexpr std::array<std::string_view, 3> kTpeKeys{"startup", "per_round", "metric"};

double number_in(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(number)) {
    throw std::invalid_argument(fmt::format("'{}' is no number", text));
  }
  return number;
}

class Search {
 public:
  Search(const base::YamlNode& node, std::span<const SearchPoint> suggested, SettingReader& reader,
         SweepDraft& draft, base::FileProblems& problems)
      : node_(node), suggested_(suggested), reader_(reader), draft_(draft), problems_(problems) {}

  Axis read() {
    read_plan();
    axis_.line = node_.line;
    const auto trials = static_cast<std::size_t>(study_.trials);
    drawn_ = by_tpe_ ? std::min(trials, static_cast<std::size_t>(study_.startup)) : trials;
    const std::size_t known = std::min(trials, drawn_ + suggested_.size());
    axis_.points.resize(known);
    study_.points.resize(known);
    bool any = false;
    reader_.walk("search", node_, [&](const std::string& name, int line, const YamlNode& value) {
      if (std::ranges::count(kKeys, name) > 0) return;
      if (by_tpe_ && std::ranges::count(kTpeKeys, name) > 0) return;
      any = true;
      Setting setting;
      if (!reader_.find_target("search", name, line, setting)) return;
      std::optional<SearchRange> range;
      try {
        if (value.is_scalar()) range = search_range_from(value.text);
      } catch (const std::invalid_argument& error) {
        return refuse(name, value.line, fmt::format("{} ({})", base::shown(value), error.what()),
                      "log(LOW, HIGH) or uniform(LOW, HIGH), in quotes if between braces");
      }
      if (range) {
        draw_numbers(name, setting, *range);
      } else {
        draw_choices(name, line, value);
      }
    });
    if (!any) {
      problems_.add(node_.line, "search", "no field", fmt::format("a field with {}", kWanted));
    }
    leave_out_repetitions();
    if (by_tpe_) {
      draft_.search_line = node_.line;
      draft_.study = std::move(study_);
    }
    return std::move(axis_);
  }

 private:
  static constexpr std::string_view kWanted =
      "log(LOW, HIGH), uniform(LOW, HIGH) or a list of values";

  void read_plan() {
    if (const YamlNode* const by = node_.find("by")) {
      by_tpe_ = by->is_scalar() && by->text == "tpe";
      if (!by_tpe_ && (!by->is_scalar() || by->text != "random")) {
        problems_.add(by->line, "search.by", base::shown(*by), "random or tpe");
      }
    }
    if (const YamlNode* const seed = node_.find("search_seed")) {
      const json number = base::to_json(*seed);
      if (number.is_number_integer() && !is_too_large(*seed, number)) {
        study_.seed = number.get<std::int64_t>();
      } else {
        problems_.add(seed->line, "search.search_seed", base::shown(*seed), "a whole number");
      }
    }
    const std::string points = fmt::format(", from 1 to {}", kMaxTrials);
    read_count("trials", "how many points to draw" + points, study_.trials);
    if (!by_tpe_) return;
    if (node_.find("startup") != nullptr) {
      read_count("startup", "how many points to draw at random first" + points, study_.startup);
    }
    if (node_.find("per_round") != nullptr) {
      read_count("per_round", "how many points to suggest together" + points, study_.per_round);
    }
    if (const YamlNode* const metric = node_.find("metric")) {
      if (metric->is_scalar() && !metric->text.empty()) {
        study_.metric = metric->text;
      } else {
        problems_.add(metric->line, "search.metric", base::shown(*metric), "the name of a metric");
      }
    }
  }

  void read_count(const char* key, const std::string& wanted, std::int64_t& count) {
    const YamlNode* const node = node_.find(key);
    const json number = node == nullptr ? json() : base::to_json(*node);
    if (number.is_number_integer() && number >= 1 && number <= kMaxTrials) {
      count = number.get<std::int64_t>();
    } else {
      problems_.add(node == nullptr ? node_.line : node->line, fmt::format("search.{}", key),
                    node == nullptr ? "nothing" : base::shown(*node), wanted);
    }
  }

  void draw_numbers(const std::string& name, const Setting& setting, const SearchRange& range) {
    const int line = setting.line;
    const Field* const field = setting.field;
    const bool is_whole = setting.target == Target::priority || setting.target == Target::gpus ||
                          (field != nullptr && field->type == FieldType::integer);
    if (!is_whole && setting.target != Target::user &&
        (field == nullptr || field->type != FieldType::number)) {
      return refuse(name, line, "a range of numbers", "a list of values");
    }
    const auto read = [&](const std::string& text) -> std::optional<Setting> {
      YamlNode node;
      node.kind = YamlNode::Kind::scalar;
      node.line = line;
      node.text = text;
      node.plain = true;
      Setting one = setting;
      if (!reader_.read_value(one, node, true)) return std::nullopt;
      return one;
    };
    if (!read(range.low) || !read(range.high)) return;
    study_.fields.push_back({name, range, is_whole});
    for (std::size_t point = 0; point < axis_.points.size(); ++point) {
      const std::string& text =
          add_text(name, point, [&](double draw) { return value_in_range(range, is_whole, draw); });
      if (std::optional<Setting> one = read(text)) axis_.points[point].push_back(std::move(*one));
    }
  }

  void draw_choices(const std::string& name, int line, const YamlNode& written) {
    const YamlNode value = reader_.with_ranges(name, written);
    if (!value.is_sequence()) return refuse(name, value.line, base::shown(value), kWanted);
    const std::vector<ListedSetting> list = reader_.list("search", name, line, value);
    if (list.empty()) return;
    study_.fields.push_back({name, std::nullopt, false, list.size()});
    for (std::size_t point = 0; point < axis_.points.size(); ++point) {
      const std::string& chosen = add_text(name, point, [&](double draw) {
        return fmt::format("{}", std::floor(draw * static_cast<double>(list.size())));
      });
      axis_.points[point].push_back(list.at(std::stoul(chosen)).setting);
    }
  }

  // The value of the field that was added last at a point.
  template <typename Drawn>
  const std::string& add_text(const std::string& name, std::size_t point, const Drawn& drawn) {
    SearchPoint& texts = study_.points[point];
    texts.push_back(point < drawn_
                        ? drawn(search_draw(study_.seed, name, static_cast<std::int64_t>(point)))
                        : suggested_[point - drawn_][texts.size()]);
    return texts.back();
  }

  void refuse(const std::string& name, int line, const std::string& found,
              std::string_view wanted) {
    problems_.add(line, name, found, std::string(wanted));
    draft_.refused.insert(name);
  }

  void leave_out_repetitions() {
    std::map<SearchPoint, std::size_t> known;  // their places on the axis
    std::vector<std::vector<Setting>> points;
    for (std::size_t point = 0; point < axis_.points.size(); ++point) {
      const auto [at, is_new] = known.emplace(study_.points[point], points.size());
      if (is_new) points.push_back(std::move(axis_.points[point]));
      draft_.search_places.push_back(at->second);
    }
    axis_.points = std::move(points);
    if (axis_.points.size() < study_.points.size()) {
      draft_.search_notes.push_back(
          fmt::format("search: {} of {} points are different; the others are left out",
                      axis_.points.size(), study_.points.size()));
    }
    if (!study_.is_complete()) {
      draft_.search_notes.push_back(
          fmt::format("search: {} of {} points are known; petlab run adds the others by TPE",
                      study_.points.size(), study_.trials));
    }
  }

  const YamlNode& node_;
  std::span<const SearchPoint> suggested_;
  SettingReader& reader_;
  SweepDraft& draft_;
  base::FileProblems& problems_;
  bool by_tpe_ = false;
  Study study_;            // also used for a random search
  std::size_t drawn_ = 0;  // the number of points drawn at random, which come first
  Axis axis_;
};

}  // namespace

Axis read_search(const base::YamlNode& node, std::span<const SearchPoint> suggested,
                 SettingReader& reader, SweepDraft& draft, base::FileProblems& problems) {
  return Search(node, suggested, reader, draft, problems).read();
}

std::optional<SearchRange> search_range_from(std::string_view text) {
  for (const std::string_view name : {"log", "uniform"}) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with('(')) continue;
    const std::string_view rest = text.substr(name.size() + 1);
    const std::size_t comma = rest.find(',');
    if (!rest.ends_with(')') || comma == std::string_view::npos) {
      throw std::invalid_argument("two numbers are missing");
    }
    SearchRange range{name == "log", std::string(base::trimmed(rest.substr(0, comma))),
                      std::string(base::trimmed(rest.substr(comma + 1, rest.size() - comma - 2)))};
    const double low = number_in(range.low);
    if (low >= number_in(range.high)) throw std::invalid_argument("the range is empty");
    if (range.is_log && low <= 0) throw std::invalid_argument("zero has no logarithm");
    return range;
  }
  return std::nullopt;
}

double search_draw(std::int64_t search_seed, std::string_view field, std::int64_t index) {
  base::Sha256 digest;
  const std::string text = fmt::format("{}\n{}\n{}", search_seed, field, index);
  digest.add(text.data(), text.size());
  const auto bytes = digest.finish_bytes();
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | bytes[i];
  return std::ldexp(static_cast<double>(bits >> 11), -53);
}

std::string value_in_range(const SearchRange& range, bool is_whole, double draw) {
  const double low = number_in(range.low);
  const double high = number_in(range.high);
  // Each whole number n has the interval from n to n + 1.
  const double end = is_whole ? high + 1 : high;
  const double value = range.is_log ? std::exp(std::log(low) + draw * std::log(end / low))
                                    : low + draw * (end - low);
  return nearest_in_range(range, is_whole, is_whole ? std::floor(value) : value);
}

std::string nearest_in_range(const SearchRange& range, bool is_whole, double value) {
  const double low = number_in(range.low);
  const double high = number_in(range.high);
  if (is_whole) return fmt::format("{:.0f}", std::clamp(std::round(value), low, high));
  const std::string text = fmt::format("{:.4g}", value);
  const double rounded = number_in(text);
  return rounded < low ? range.low : rounded > high ? range.high : text;
}

}  // namespace petlab::sweeps
