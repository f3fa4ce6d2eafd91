#include "sweeps/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/shown.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {
namespace {

using base::YamlNode;
using nlohmann::json;

constexpr std::array<std::string_view, 3> kKeys{"trials", "by", "search_seed"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

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
  Search(const base::YamlNode& node, SettingReader& reader, SweepDraft& draft,
         base::FileProblems& problems)
      : node_(node), reader_(reader), draft_(draft), problems_(problems) {}

  Axis read() {
    read_plan();
    axis_.line = node_.line;
    axis_.points.resize(trials_);
    drawn_.resize(trials_);
    bool any = false;
    reader_.walk("search", node_, [&](const std::string& name, int line, const YamlNode& value) {
      if (std::ranges::count(kKeys, name) > 0) return;
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
    return std::move(axis_);
  }

 private:
  static constexpr std::string_view kWanted =
      "log(LOW, HIGH), uniform(LOW, HIGH) or a list of values";

  void read_plan() {
    if (const YamlNode* const by = node_.find("by");
        by != nullptr && (!by->is_scalar() || by->text != "random")) {
      problems_.add(by->line, "search.by", base::shown(*by), "random");
    }
    if (const YamlNode* const seed = node_.find("search_seed")) {
      const json number = base::to_json(*seed);
      if (number.is_number_integer() && !is_too_large(*seed, number)) {
        seed_ = number.get<std::int64_t>();
      } else {
        problems_.add(seed->line, "search.search_seed", base::shown(*seed), "a whole number");
      }
    }
    const YamlNode* const trials = node_.find("trials");
    const json number = trials == nullptr ? json() : base::to_json(*trials);
    if (number.is_number_integer() && number >= 1 && number <= kMaxTrials) {
      trials_ = number.get<std::size_t>();
    } else {
      problems_.add(trials == nullptr ? node_.line : trials->line, "search.trials",
                    trials == nullptr ? "nothing" : base::shown(*trials),
                    fmt::format("how many points to draw, from 1 to {}", kMaxTrials));
    }
  }

  void draw_numbers(const std::string& name, const Setting& setting, const SearchRange& range) {
    const int line = setting.line;
    const Field* const field = setting.field;
    const bool is_whole = setting.target == Target::priority ||
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
    for (std::size_t point = 0; point < trials_; ++point) {
      const std::string text = value_in_range(range, is_whole, draw(name, point));
      if (std::optional<Setting> one = read(text)) axis_.points[point].push_back(std::move(*one));
      drawn_[point] += text + "\n";
    }
  }

  void draw_choices(const std::string& name, int line, const YamlNode& written) {
    const YamlNode value = reader_.with_ranges(name, written);
    if (!value.is_sequence()) return refuse(name, value.line, base::shown(value), kWanted);
    const std::vector<ListedSetting> list = reader_.list("search", name, line, value);
    if (list.empty()) return;
    for (std::size_t point = 0; point < trials_; ++point) {
      const auto chosen =
          static_cast<std::size_t>(draw(name, point) * static_cast<double>(list.size()));
      axis_.points[point].push_back(list[chosen].setting);
      drawn_[point] += fmt::format("{}\n", chosen);
    }
  }

  double draw(const std::string& name, std::size_t point) const {
    return search_draw(seed_, name, static_cast<std::int64_t>(point));
  }

  void refuse(const std::string& name, int line, const std::string& found,
              std::string_view wanted) {
    problems_.add(line, name, found, std::string(wanted));
    draft_.refused.insert(name);
  }

  void leave_out_repetitions() {
    std::set<std::string> known;
    std::vector<std::vector<Setting>> points;
    for (std::size_t point = 0; point < trials_; ++point) {
      if (known.insert(drawn_[point]).second) points.push_back(std::move(axis_.points[point]));
    }
    axis_.points = std::move(points);
    if (axis_.points.size() == trials_) return;
    draft_.search_note =
        fmt::format("search: {} of {} points are different; the others are left out",
                    axis_.points.size(), trials_);
  }

  const YamlNode& node_;
  SettingReader& reader_;
  SweepDraft& draft_;
  base::FileProblems& problems_;
  std::size_t trials_ = 1;
  std::int64_t seed_ = 0;
  Axis axis_;
  std::vector<std::string> drawn_;  // by point: its values as text
};

}  // namespace

Axis read_search(const base::YamlNode& node, SettingReader& reader, SweepDraft& draft,
                 base::FileProblems& problems) {
  return Search(node, reader, draft, problems).read();
}

std::optional<SearchRange> search_range_from(std::string_view text) {
  for (const std::string_view name : {"log", "uniform"}) {
    if (!text.starts_with(name) || !text.substr(name.size()).starts_with('(')) continue;
    const std::string_view rest = text.substr(name.size() + 1);
    const std::size_t comma = rest.find(',');
    if (!rest.ends_with(')') || comma == std::string_view::npos) {
      throw std::invalid_argument("two numbers are missing");
    }
    SearchRange range{name == "log", std::string(trimmed(rest.substr(0, comma))),
                      std::string(trimmed(rest.substr(comma + 1, rest.size() - comma - 2)))};
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
  if (is_whole) return fmt::format("{:.0f}", std::clamp(std::floor(value), low, high));
  const std::string text = fmt::format("{:.4g}", value);
  const double rounded = number_in(text);
  return rounded < low ? range.low : rounded > high ? range.high : text;
}

}  // namespace petlab::sweeps
