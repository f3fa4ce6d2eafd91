#include "results/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/shallow_json.h"
#include "results/connection.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

constexpr const char* kRecordKey = "code";

void add_text(Code& code, const nlohmann::json& object, const char* key) {
  if (const auto found = object.find(key); found != object.end() && found->is_string()) {
    code[key] = found->get<std::string>();
  }
}

// Workers of users may report anything.
void add_texts(Code& code, const nlohmann::json& object, const char* key, const char* name) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return;
  for (const auto& [one, value] : found->items()) {
    if (value.is_string()) code[name + one] = value.get<std::string>();
  }
}

}  // namespace

std::string launch_code_of(const Provenance& said) {
  const nlohmann::ordered_json petlab = base::shallow_ordered_json_or_none(said.petlab);
  nlohmann::ordered_json made = nlohmann::ordered_json::object();
  for (const char* key : {kRecordKey, "script", "tree"}) {
    if (petlab.is_object() && petlab.contains(key)) made[key] = petlab.at(key);
  }
  return made.empty() ? std::string() : made.dump();
}

RanCode code_of(const Provenance& said) {
  RanCode code;
  if (const nlohmann::json petlab = base::shallow_json_or_none(said.petlab); petlab.is_object()) {
    if (const auto record = petlab.find(kRecordKey);
        record != petlab.end() && record->is_string()) {
      code.record = record->get<std::string>();
    }
    add_text(code.parts, petlab, "script");
    add_text(code.parts, petlab, "tree");
  }
  const nlohmann::json worker = base::shallow_json_or_none(said.worker);
  if (!worker.is_object()) return code;
  add_text(code.parts, worker, "python");
  add_text(code.parts, worker, "libtorch");
  add_texts(code.parts, worker, "packages", "package ");
  add_texts(code.parts, worker, "modules", "module ");
  return code;
}

CodeByTrial code_of_trials(const Reader& reader, const std::vector<std::string>& ids) {
  return internal::reading(internal::connection_of(reader), [&] {
    // Most attempts share their texts, which are parsed once.
    std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const RanCode>> known;
    CodeByTrial by_trial;
    internal::Query rows(internal::connection_of(reader),
                         "SELECT t.trial_id, v.petlab, v.worker FROM json_each(?1) j "
                         "CROSS JOIN trials t ON "
                         "t.trial_id = j.value CROSS JOIN attempts a ON a.trial = t.key AND "
                         "(a.counts_to IS NOT NULL "
                         "OR (t.result_attempt IS NULL AND a.checkpoint_seq IS NOT NULL)) CROSS "
                         "JOIN provenance v ON "
                         "v.attempt = a.key");
    rows.with(nlohmann::json(ids).dump());
    std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> found;
    while (rows.step()) found.push_back({rows.text(0), {rows.integer(1), rows.integer(2)}});
    const auto text_of = [&](std::int64_t key) {
      internal::Query text(internal::connection_of(reader),
                           "SELECT text FROM provenance_texts WHERE key = ?1");
      return text.with(key).step() ? text.text(0) : std::string();
    };
    for (const auto& [trial, keys] : found) {
      auto [entry, is_new] = known.try_emplace(keys);
      if (is_new) {
        entry->second = std::make_shared<const RanCode>(
            code_of(Provenance{text_of(keys.first), text_of(keys.second)}));
      }
      if (entry->second->parts.empty()) continue;
      auto& code = by_trial[trial];
      if (std::find(code.begin(), code.end(), entry->second) == code.end()) {
        code.push_back(entry->second);
      }
    }
    return by_trial;
  });
}

std::map<std::string, std::set<std::string>> differing_code(
    const std::set<std::shared_ptr<const RanCode>>& all) {
  std::map<std::string, std::set<std::string>> values;
  if (all.size() < 2) return values;
  for (const auto& code : all) {
    for (const auto& [name, value] : code->parts) values[name].insert(value);
  }
  std::erase_if(values, [](const auto& entry) { return entry.second.size() < 2; });
  return values;
}

std::string code_difference_text(const std::string& name, const std::set<std::string>& values) {
  if (name == "tree") return "tracked files";
  if (name == "script" || name.starts_with("module ")) return name;
  constexpr std::string_view kPackage = "package ";
  const std::string shown = name.starts_with(kPackage) ? name.substr(kPackage.size()) : name;
  return fmt::format("{} {}", shown, fmt::join(values, " | "));
}

}  // namespace petlab::results
