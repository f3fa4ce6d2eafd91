#include "sweeps/early_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file_problems.h"
#include "base/shown.h"
#include "base/yaml_tree.h"
#include "sweeps/catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;
using Kind = EarlyStopRule::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 3> kKinds{
    {{Kind::halving, "halving"}, {Kind::median, "median"}, {Kind::paired, "paired"}}};

std::vector<std::string> keys_of(Kind kind) {
  switch (kind) {
    case Kind::halving:
      return {"rule", "metric", "at", "keep"};
    case Kind::median:
      return {"rule", "metric", "after"};
    case Kind::paired:
      return {"rule", "metric", "after", "against", "p"};
  }
  return {};
}

// A number such as 0.25, or a fraction such as 1/3.
std::optional<double> fraction_from(const base::YamlNode& node) {
  const json value = base::to_json(node);
  if (value.is_number()) return value.get<double>();
  std::int64_t above = 0;
  std::int64_t below = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto slash = std::from_chars(node.text.data(), end, above);
  if (slash.ec != std::errc() || slash.ptr == end || *slash.ptr != '/') return std::nullopt;
  const auto rest = std::from_chars(slash.ptr + 1, end, below);
  if (rest.ec != std::errc() || rest.ptr != end || below <= 0) return std::nullopt;
  return static_cast<double>(above) / static_cast<double>(below);
}

class Reader {
 public:
  explicit Reader(base::FileProblems& problems) : problems_(problems) {}

  EarlyStopRule read(const base::YamlNode& node) {
    if (!node.is_map()) {
      refuse(node, "stop_early", "a group such as {rule: halving, at: [1, 3, 9], keep: 1/3}");
      return rule_;
    }
    const base::YamlNode* const kind = node.find("rule");
    const auto known = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& row) {
      return kind != nullptr && kind->is_scalar() && kind->text == row.second;
    });
    if (known == kKinds.end()) {
      refuse(kind == nullptr ? node : *kind, "stop_early.rule", "halving, median or paired",
             kind == nullptr);
      return rule_;
    }
    rule_.kind = known->first;
    const std::vector<std::string> keys = keys_of(rule_.kind);
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto& [key, line] = node.keys[i];
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        problems_.add(line, "stop_early", base::shown(json(key)),
                      with_nearest(fmt::format("a key of {}: {}", to_string(rule_.kind),
                                               fmt::join(keys, ", ")),
                                   key, keys));
      } else {
        read_key(key, node.items[i]);
      }
    }
    if (rule_.kind == Kind::halving && node.find("at") == nullptr) {
      refuse(node, "stop_early.at", kAtWanted, true);
    }
    return rule_;
  }

 private:
  static constexpr std::string_view kAtWanted = "a list of validations, such as [1, 3, 9]";

  void read_key(const std::string& key, const base::YamlNode& value) {
    if (key == "metric" || key == "against") {
      if (!value.is_scalar() || value.text.empty()) {
        refuse(value, "stop_early." + key,
               key == "metric" ? "the name of a metric" : "best, or the name of a variant");
        return;
      }
      if (key == "metric") rule_.metric = value.text;
      if (key == "against") rule_.against = value.text == "best" ? std::string() : value.text;
    } else if (key == "at") {
      read_at(value);
    } else if (key == "after") {
      const json number = base::to_json(value);
      if (!number.is_number_integer() || number.get<std::int64_t>() < 1) {
        refuse(value, "stop_early.after", "a validation, from 1");
        return;
      }
      rule_.after = number.get<std::int64_t>();
    } else if (key == "keep") {
      const std::optional<double> keep = fraction_from(value);
      if (!keep || !(*keep > 0 && *keep < 1)) {
        refuse(value, "stop_early.keep", "a fraction between 0 and 1, such as 1/3");
        return;
      }
      rule_.keep = *keep;
    } else if (key == "p") {
      const json number = base::to_json(value);
      if (!number.is_number() || !(number.get<double>() > 0 && number.get<double>() <= 0.5)) {
        refuse(value, "stop_early.p", "a number above 0, at most 0.5");
        return;
      }
      rule_.p = number.get<double>();
    }
  }

  void read_at(const base::YamlNode& value) {
    if (!value.is_sequence() || value.items.empty()) {
      refuse(value, "stop_early.at", kAtWanted);
      return;
    }
    for (const base::YamlNode& item : value.items) {
      const json number = base::to_json(item);
      const std::int64_t least = rule_.at.empty() ? 1 : rule_.at.back() + 1;
      if (!number.is_number_integer() || number.get<std::int64_t>() < least) {
        refuse(item, "stop_early.at", fmt::format("a validation, from {}", least));
        continue;
      }
      rule_.at.push_back(number.get<std::int64_t>());
    }
  }

  void refuse(const base::YamlNode& node, const std::string& subject, std::string_view wanted,
              bool missing = false) {
    problems_.add(node.line, subject, missing ? "nothing" : base::shown(node), wanted);
  }

  base::FileProblems& problems_;
  EarlyStopRule rule_;
};

}  // namespace

std::string_view to_string(EarlyStopRule::Kind kind) {
  for (const auto& [known, word] : kKinds) {
    if (known == kind) return word;
  }
  return "";
}

EarlyStopRule read_early_stop(const base::YamlNode& node, base::FileProblems& problems) {
  return Reader(problems).read(node);
}

}  // namespace petlab::sweeps
