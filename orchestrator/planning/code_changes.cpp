#include "orchestrator/planning/code_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/shown.h"
#include "orchestrator/launching/code_capture.h"

namespace petlab::orchestrator {
namespace {

using protocol::CodeRecord;

std::string short_commit(const std::string& commit) { return commit.substr(0, 12); }

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Adds a change unless it is known.
void add_change(std::vector<std::string>& changes, std::string text) {
  if (std::find(changes.begin(), changes.end(), text) == changes.end()) {
    changes.push_back(std::move(text));
  }
}

// The files of the command whose content differs.
void add_scripts(std::vector<std::string>& changes, const KnownCode& then, const KnownCode& now) {
  const std::size_t before = changes.size();
  if (then.record && now.record && then.record->files.size() == now.record->files.size()) {
    for (std::size_t at = 0; at < now.record->files.size(); ++at) {
      if (then.record->files[at].digest != now.record->files[at].digest) {
        add_change(changes, file_name(now.record->files[at].path));
      }
    }
  }
  if (changes.size() == before) add_change(changes, "the worker's script");
}

// What differs in the repository: its commit, and files that differ from the commit on one side.
void add_repository(std::vector<std::string>& changes, const KnownCode& then,
                    const KnownCode& now) {
  const std::size_t before = changes.size();
  if (then.record && now.record && then.record->repository && now.record->repository) {
    const protocol::CodeRepository& a = *then.record->repository;
    const protocol::CodeRepository& b = *now.record->repository;
    std::set<std::string> paths;
    for (const auto* changed : {&a.changed, &b.changed}) {
      for (const auto& [path, digest] : *changed) paths.insert(path);
    }
    for (const std::string& path : paths) {
      const auto in_a = a.changed.find(path);
      const auto in_b = b.changed.find(path);
      const bool equal = (in_a == a.changed.end()) == (in_b == b.changed.end()) &&
                         (in_a == a.changed.end() || in_a->second == in_b->second);
      // A script is named by its file name.
      const bool is_script = std::any_of(changes.begin(), changes.end(), [&](const auto& one) {
        return path == one || path.ends_with("/" + one);
      });
      if (!equal && !is_script) add_change(changes, path);
    }
    if (a.commit != b.commit) {
      add_change(changes,
                 fmt::format("commit {}, was {}", short_commit(b.commit), short_commit(a.commit)));
    }
    // The script is one of the tracked files.
    if (changes.size() == before && before > 0) return;
  }
  if (changes.size() == before) add_change(changes, "tracked files of the script's repository");
}

}  // namespace

KnownCode code_now(const CodeRecord& record, const std::string& worker_said) {
  KnownCode code;
  code.parts = results::code_of(results::Provenance{"", worker_said}).parts;
  code.record = record;
  if (std::string script = script_digest_of(record); !script.empty()) {
    code.parts["script"] = std::move(script);
  }
  if (record.repository) code.parts["tree"] = record.repository->tree;
  return code;
}

std::string launch_code(const KnownCode& code, const std::string& digest) {
  nlohmann::ordered_json json = {{"code", digest}};
  for (const char* name : {"script", "tree"}) {
    if (const auto part = code.parts.find(name); part != code.parts.end()) {
      json[name] = part->second;
    }
  }
  return json.dump();
}

std::vector<std::string> code_changes(const KnownCode& then, const KnownCode& now) {
  std::vector<std::string> changes;
  const auto differs = [&](const std::string& name) {
    const auto before = then.parts.find(name);
    const auto after = now.parts.find(name);
    return before != then.parts.end() && after != now.parts.end() &&
           before->second != after->second;
  };
  if (differs("script")) add_scripts(changes, then, now);
  if (differs("tree")) add_repository(changes, then, now);
  for (const auto& [name, value] : now.parts) {
    if (name == "script" || name == "tree" || !differs(name)) continue;
    constexpr std::string_view kPackage = "package ";
    if (name.starts_with("module ")) {
      add_change(changes, name);
    } else {
      add_change(changes,
                 fmt::format("{} {}, was {}",
                             name.starts_with(kPackage) ? name.substr(kPackage.size()) : name,
                             value, then.parts.at(name)));
    }
  }
  return changes;
}

ChangedCode changed_code(const results::Reader& reader, const std::filesystem::path& runs,
                         const std::vector<std::string>& ids, const KnownCode& now) {
  // Most trials share their code.
  std::map<const results::RanCode*, std::vector<std::string>> known;
  ChangedCode changed;
  for (const auto& [trial, all] : results::code_of_trials(reader, ids)) {
    std::vector<std::string>& changes = changed[trial];
    for (const auto& code : all) {
      const auto [entry, is_new] = known.try_emplace(code.get());
      if (is_new) {
        KnownCode then{code->parts, std::nullopt};
        entry->second = code_changes(then, now);
        if (!entry->second.empty() && !code->record.empty()) {
          try {
            then.record = protocol::read_code_record(runs, code->record);
            entry->second = code_changes(then, now);
          } catch (const base::Error&) {
            // Without the record's file, it is known that they differ, but not in which files.
          }
        }
      }
      for (const std::string& change : entry->second) add_change(changes, change);
    }
  }
  return changed;
}

std::string listed_changes(const std::vector<std::string>& changes) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t at = 0; at < std::min(kMost, changes.size()); ++at) {
    text += (at == 0 ? "" : "; ") + base::printable(changes[at]);
  }
  if (changes.size() > kMost) text += fmt::format("; and {} more", changes.size() - kMost);
  return text;
}

std::string changed_code_text(const ChangedCode& changed) {
  std::vector<std::string> all;
  std::size_t trials = 0;
  for (const auto& [trial, changes] : changed) {
    trials += changes.empty() ? 0 : 1;
    for (const std::string& change : changes) add_change(all, change);
  }
  if (all.empty()) return {};
  return fmt::format("{} of {} {} ran other code than now: {}", trials, changed.size(),
                     changed.size() == 1 ? "trial" : "trials", listed_changes(all));
}

}  // namespace petlab::orchestrator
