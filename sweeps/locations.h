#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace petlab::sweeps {

/// Looks up an environment variable. A parameter so that tests can replace it.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The environment of this process (getenv).
Environment process_environment();

/// The folders that petlab uses on this machine.
struct Locations {
  /// PETLAB_HOME, else $XDG_DATA_HOME/petlab, else $HOME/.local/share/petlab.
  std::filesystem::path home;
  /// PETLAB_DATA if set, then home/data. Searched in this order.
  std::vector<std::filesystem::path> data_folders;
  /// The download folder of Hugging Face's libraries (sweeps/hub_cache.h); may be empty.
  std::filesystem::path hub;
  /// home/models: backbones by name.
  std::filesystem::path models() const { return home / "models"; }
  /// home/cache: digests of large files.
  std::filesystem::path cache() const { return home / "cache"; }
};

/// Throws std::invalid_argument if none of PETLAB_HOME, XDG_DATA_HOME and HOME is set.
Locations find_locations(const Environment& environment);

/// The folder of the backbone in TrialConfig::backbone: a path if it contains a slash (relative to
/// `relative_to`), else a folder under models(). If neither exists, the name is looked up in
/// Hugging Face's cache, with or without its owner. Throws sweeps::Error naming the searched places
/// and the known names if no folder is found, or if several owners have a model of that name.
std::filesystem::path backbone_folder(const Locations& locations, const std::string& backbone,
                                      const std::filesystem::path& relative_to);

}  // namespace petlab::sweeps
