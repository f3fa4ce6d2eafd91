#include "sweeps/locations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/hub_cache.h"

namespace petlab::sweeps {
namespace {

std::string named(const Environment& environment, const std::string& name) {
  return environment(name).value_or("");  // set but empty counts as unset
}

// Looks the name up in Hugging Face's cache; std::nullopt if it has no such model.
std::optional<std::filesystem::path> from_hub_cache(const Locations& locations,
                                                    const std::string& backbone) {
  const std::optional<HubName> wanted = parse_hub_name(backbone);
  if (!wanted) return std::nullopt;
  const std::vector<CachedModel> found =
      cached_models(locations.hub, wanted->name, wanted->revision);
  std::vector<std::string> complete;
  std::filesystem::path folder;
  for (const CachedModel& model : found) {
    if (!model.complete) continue;
    // A model of exactly this name without owner, as old ones have, is unambiguous.
    if (model.repository == wanted->name) return model.snapshot;
    complete.push_back(model.repository);
    folder = model.snapshot;
  }
  if (complete.size() > 1) {
    throw Error(
        fmt::format("backbone {}: Hugging Face's cache {} has several models of that name: {}; "
                    "name one with its owner",
                    backbone, locations.hub.string(), fmt::join(complete, ", ")));
  }
  if (complete.empty() && !found.empty() && !found.front().revisions.empty()) {
    const CachedModel& model = found.front();
    const std::string commits = base::list_in_quotes(model.revisions);
    throw Error(
        wanted->revision.empty()
            ? fmt::format("backbone {0}: Hugging Face's cache {1} has several commits of it but no "
                          "refs/main: {2}; name one ({3}@COMMIT), or download main: petlab fetch "
                          "backbone {3}",
                          backbone, locations.hub.string(), commits, model.repository)
            : fmt::format("backbone {0}: Hugging Face's cache {1} has no single revision {2} of "
                          "it, found {3}; to download it: petlab fetch backbone {4}@{2}",
                          backbone, locations.hub.string(), wanted->revision, commits,
                          model.repository));
  }
  if (complete.empty() && !found.empty()) {
    throw Error(
        fmt::format("backbone {}: found {} in Hugging Face's cache, expected config.json and "
                    "the weights in it: download the whole model",
                    backbone, found.front().snapshot.string()));
  }
  if (complete.empty()) return std::nullopt;
  return folder;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Locations find_locations(const Environment& environment) {
  Locations locations;
  if (const std::string home = named(environment, "PETLAB_HOME"); !home.empty()) {
    locations.home = std::filesystem::absolute(home);
  } else if (const std::string data = named(environment, "XDG_DATA_HOME"); !data.empty()) {
    locations.home = std::filesystem::absolute(data) / "petlab";
  } else if (const std::string user = named(environment, "HOME"); !user.empty()) {
    locations.home = std::filesystem::absolute(user) / ".local/share/petlab";
  } else {
    throw std::invalid_argument(
        "none of PETLAB_HOME, XDG_DATA_HOME and HOME is set; set one to place petlab's folder");
  }
  if (const std::string data = named(environment, "PETLAB_DATA"); !data.empty()) {
    locations.data_folders.push_back(std::filesystem::absolute(data));
  }
  locations.data_folders.push_back(locations.home / "data");
  locations.hub = find_hub_cache(environment);
  return locations;
}

std::filesystem::path backbone_folder(const Locations& locations, const std::string& backbone,
                                      const std::filesystem::path& relative_to) {
  const bool is_path = backbone.find('/') != std::string::npos;
  const std::filesystem::path folder =
      is_path ? (std::filesystem::absolute(relative_to) / backbone).lexically_normal()
              : locations.models() / backbone;
  std::error_code unreadable;
  if (std::filesystem::is_directory(folder, unreadable)) return folder;
  if (const auto cached = from_hub_cache(locations, backbone)) return *cached;
  if (is_path && parse_hub_name(backbone) && !locations.hub.empty()) {
    throw Error(
        fmt::format("backbone {0}: found neither a folder {1} nor this model in Hugging Face's "
                    "cache {2}; to download it: petlab fetch backbone {0}",
                    backbone, folder.string(), locations.hub.string()));
  }
  if (is_path) {
    throw Error(
        fmt::format("backbone {}: the folder {} with config.json and weights does not exist",
                    backbone, folder.string()));
  }
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(locations.models(), unreadable), end;
       !unreadable && it != end; it.increment(unreadable)) {
    std::error_code unknown;
    if (it->is_directory(unknown)) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  const std::string near = nearest_word(backbone, names);
  throw Error(fmt::format(
      "backbone {}: the folder {} with config.json and weights does not exist; there {}{} (move "
      "the folder with PETLAB_HOME; a name with a slash is a path{})",
      backbone, folder.string(), names.empty() ? "is none" : fmt::format("are: {}", known),
      near.empty() ? "" : fmt::format(", nearest: {}", near),
      locations.hub.empty()
          ? ""
          : fmt::format(
                "; nor is the model in Hugging Face's cache {}, which petlab fetch backbone fills",
                locations.hub.string())));
}

}  // namespace petlab::sweeps
