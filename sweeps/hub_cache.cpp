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

// "models--FacebookAI--roberta-base" is FacebookAI/roberta-base. Hugging Face's own library cannot
// tell a name with two hyphens from an owner either.
std::optional<std::string> repository_of(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repository = folder.substr(kPrefix.size());
  if (const auto between = repository.find("--"); between != std::string::npos) {
    repository.replace(between, 2, "/");
  }
  return repository;
}

std::optional<fs::path> snapshot_of(const fs::path& model) {
  std::ifstream ref(model / "refs/main");
  std::string revision;
  std::error_code unreadable;
  if (ref >> revision && revision.find('/') == std::string::npos) {
    fs::path folder = model / "snapshots" / revision;
    if (fs::is_directory(folder, unreadable)) return folder;
  }
  std::vector<fs::path> all;
  for (fs::directory_iterator it(model / "snapshots", unreadable), end; !unreadable && it != end;
       it.increment(unreadable)) {
    all.push_back(it->path());
  }
  if (all.size() != 1) return std::nullopt;
  return all.front();
}

bool is_complete(const fs::path& snapshot) {
  // A link to a blob that is not there yet, as while a download goes on, does not exist.
  const auto there = [&](std::string_view file) {
    std::error_code unreadable;
    return fs::exists(snapshot / file, unreadable);
  };
  return there("config.json") && std::any_of(kWeightFiles.begin(), kWeightFiles.end(), there);
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

std::vector<CachedModel> cached_models(const fs::path& hub, const std::string& name) {
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
    if (std::optional<fs::path> snapshot = snapshot_of(it->path())) {
      const bool complete = is_complete(*snapshot);
      found.push_back({*repository, *std::move(snapshot), complete});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.repository < b.repository; });
  return found;
}

}  // namespace petlab::sweeps
