#include "sweeps/hub_cache.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "sweeps/backbone_files.h"

namespace petlab::sweeps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

// "models--FacebookAI--roberta-base" is FacebookAI/roberta-base. As in Hugging Face's library, two
// hyphens in a name are ambiguous.
std::optional<std::string> repository_of(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repository = folder.substr(kPrefix.size());
  if (const auto between = repository.find("--"); between != std::string::npos) {
    repository.replace(between, 2, "/");
  }
  return repository;
}

// The commits with files, sorted.
std::vector<std::string> commits_of(const fs::path& model) {
  std::vector<std::string> all;
  std::error_code unreadable;
  for (fs::directory_iterator it(model / "snapshots", unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    all.push_back(it->path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Resolves a revision to a commit; empty if there is none or several match.
std::string commit_of(const fs::path& model, const std::string& revision,
                      const std::vector<std::string>& commits) {
  const auto is_there = [&](const std::string& commit) {
    return std::find(commits.begin(), commits.end(), commit) != commits.end();
  };
  // Paths must not leave refs/.
  if (revision.find("..") == std::string::npos && !revision.starts_with('/')) {
    std::ifstream ref(model / "refs" / (revision.empty() ? "main" : revision));
    std::string commit;
    if (ref >> commit && is_there(commit)) return commit;
  }
  if (revision.empty()) return commits.size() == 1 ? commits.front() : "";
  std::string found;
  for (const std::string& commit : commits) {
    if (!commit.starts_with(revision)) continue;
    if (!found.empty()) return "";
    found = commit;
  }
  return found;
}

bool is_complete(const fs::path& snapshot) {
  // A link to a blob that is still being downloaded counts as missing.
  const auto exists = [&](std::string_view file) {
    std::error_code unreadable;
    return fs::exists(snapshot / file, unreadable);
  };
  return exists("config.json") && std::any_of(kWeightFiles.begin(), kWeightFiles.end(), exists);
}

}  // namespace

fs::path find_hub_cache(const Environment& environment) {
  const auto named = [&](const char* name) { return environment(name).value_or(""); };
  if (const std::string hub = named("HF_HUB_CACHE"); !hub.empty()) return fs::absolute(hub);
  if (const std::string home = named("HF_HOME"); !home.empty()) return fs::absolute(home) / "hub";
  if (const std::string cache = named("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::absolute(cache) / "huggingface/hub";
  }
  if (const std::string user = named("HOME"); !user.empty()) {
    return fs::absolute(user) / ".cache/huggingface/hub";
  }
  return {};
}

std::optional<HubName> parse_hub_name(const std::string& text) {
  HubName parts{text.substr(0, text.find('@')), ""};
  if (parts.name.size() < text.size()) {
    parts.revision = text.substr(parts.name.size() + 1);
    if (parts.revision.empty()) return std::nullopt;
  }
  const std::string_view name = parts.name;
  const std::size_t slash = name.find('/');
  const auto fits = [](std::string_view part) {
    return !part.empty() && part.front() != '.' &&
           part.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == part.npos;
  };
  const bool good =
      slash == name.npos ? fits(name) : fits(name.substr(0, slash)) && fits(name.substr(slash + 1));
  if (!good) return std::nullopt;
  return parts;
}

std::vector<CachedModel> cached_models(const fs::path& hub, const std::string& name,
                                       const std::string& revision) {
  std::vector<CachedModel> found;
  if (hub.empty()) return found;
  const bool with_owner = name.find('/') != std::string::npos;
  std::error_code unreadable;
  for (fs::directory_iterator it(hub, unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    const std::optional<std::string> repository = repository_of(it->path().filename().string());
    if (!repository) continue;
    const bool means =
        name.empty() || *repository == name || (!with_owner && repository->ends_with("/" + name));
    if (!means) continue;
    std::vector<std::string> commits = commits_of(it->path());
    if (commits.empty()) continue;
    const std::string commit = commit_of(it->path(), revision, commits);
    if (commit.empty()) {
      found.push_back({*repository, {}, false, std::move(commits)});
      continue;
    }
    const fs::path snapshot = it->path() / "snapshots" / commit;
    found.push_back({*repository, snapshot, is_complete(snapshot), {}});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.repository < b.repository; });
  return found;
}

}  // namespace petlab::sweeps
