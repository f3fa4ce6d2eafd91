#include "exchange/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "base/shallow_json.h"

namespace petlab::exchange {
namespace {

using results::CountedValue;

bool same_value(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return !a && !b;
  return std::bit_cast<std::uint64_t>(*a) == std::bit_cast<std::uint64_t>(*b);
}

std::string value_text(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "undefined";
}

auto place_of(const CountedValue& value) {
  return std::tie(value.split, value.task, value.name, value.step);
}

std::string series_text(const CountedValue& value) {
  return fmt::format("{} of {} on {} at step {}", value.name, value.task, value.split, value.step);
}

std::string or_nothing(const std::string& text) { return text.empty() ? "nothing" : text; }

void compare(std::vector<std::string>& found, std::string_view what, const std::string& here,
             const std::string& there) {
  if (here == there) return;
  found.push_back(
      fmt::format("{} is {} here, {} there", what, or_nothing(here), or_nothing(there)));
}

std::string key_text(const nlohmann::json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) return {};
  const nlohmann::json& value = object.at(key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string canonical(const std::string& json) {
  const nlohmann::json value = base::shallow_json_or_none(json);
  return value.is_discarded() ? json : value.dump();
}

}  // namespace

std::string difference_of_values(const std::vector<CountedValue>& here,
                                 const std::vector<CountedValue>& there) {
  std::size_t differing = 0;
  std::string first;
  std::size_t a = 0;
  std::size_t b = 0;
  while (a < here.size() || b < there.size()) {
    std::string text;
    if (b == there.size() || (a < here.size() && place_of(here[a]) < place_of(there[b]))) {
      text = fmt::format("{} is {} here and was not reported there", series_text(here[a]),
                         value_text(here[a].value));
      ++a;
    } else if (a == here.size() || place_of(there[b]) < place_of(here[a])) {
      text = fmt::format("{} is {} there and was not reported here", series_text(there[b]),
                         value_text(there[b].value));
      ++b;
    } else {
      if (!same_value(here[a].value, there[b].value)) {
        text = fmt::format("{} is {} here, {} there", series_text(here[a]),
                           value_text(here[a].value), value_text(there[b].value));
      }
      ++a;
      ++b;
    }
    if (text.empty()) continue;
    // Test scores are the most informative.
    const bool better = first.empty() || (first.find(" on test ") == std::string::npos &&
                                          text.find(" on test ") != std::string::npos);
    if (better) first = text;
    ++differing;
  }
  if (differing < 2) return first;
  return fmt::format("{}; {} values differ in all", first, differing);
}

std::vector<std::string> differences_of_making(const results::AttemptFacts& here,
                                               const results::Provenance& made_here,
                                               const results::AttemptFacts& there,
                                               const results::Provenance& made_there) {
  std::vector<std::string> found;
  compare(found, "the digest of the backbone", here.backbone_digest, there.backbone_digest);
  std::set<std::string> tasks;
  for (const auto* attempt : {&here, &there}) {
    for (const auto& [task, digest] : attempt->data_digests) tasks.insert(task);
  }
  const auto digest_of = [](const results::AttemptFacts& attempt, const std::string& task) {
    const auto digest = attempt.data_digests.find(task);
    return digest == attempt.data_digests.end() ? std::string() : digest->second;
  };
  for (const std::string& task : tasks) {
    compare(found, fmt::format("the digest of {}'s data", task), digest_of(here, task),
            digest_of(there, task));
  }
  compare(found, "numerics", canonical(here.numerics), canonical(there.numerics));
  compare(found, "the worker", here.worker + " " + here.worker_version,
          there.worker + " " + there.worker_version);
  const nlohmann::json petlab_here = base::shallow_json_or_none(made_here.petlab);
  const nlohmann::json petlab_there = base::shallow_json_or_none(made_there.petlab);
  const nlohmann::json worker_here = base::shallow_json_or_none(made_here.worker);
  const nlohmann::json worker_there = base::shallow_json_or_none(made_there.worker);
  for (const char* key : {"commit", "clean", "compiler", "flags"}) {
    compare(found, fmt::format("petlab's {}", key), key_text(petlab_here, key),
            key_text(petlab_there, key));
  }
  for (const char* key : {"commit", "clean", "compiler", "flags", "libtorch"}) {
    compare(found, fmt::format("the worker's {}", key), key_text(worker_here, key),
            key_text(worker_there, key));
  }
  return found;
}

}  // namespace petlab::exchange
