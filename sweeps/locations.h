#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace petlab::sweeps {

/// Looks up an environment variable; an argument so that tests bring their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The process's own environment (getenv).
Environment process_environment();

/// Where things lie on this machine.
struct Locations {
  /// PETLAB_HOME, else $XDG_DATA_HOME/petlab, else $HOME/.local/share/petlab.
  std::filesystem::path home;
  /// PETLAB_DATA where it is set, then home/data. Searched in this order.
  std::vector<std::filesystem::path> data_folders;
  /// Where Hugging Face's libraries keep their downloads (sweeps/hub_cache.h); may be empty.
  std::filesystem::path hub;
  /// home/models: backbones by name.
  std::filesystem::path models() const { return home / "models"; }
  /// home/cache: digests of big files.
  std::filesystem::path cache() const { return home / "cache"; }
};

/// Throws std::invalid_argument where none of PETLAB_HOME, XDG_DATA_HOME and HOME is set.
Locations find_locations(const Environment& environment);

/// The folder of a backbone as TrialConfig::backbone names it: with a slash it is a path (relative
/// to `relative_to`), else a folder under models(). What is neither is looked for in Hugging Face's
/// cache, by its name there with or without its owner. Throws sweeps::Error naming what was looked
/// for where no such folder is, and the names there; also where none but several owners have it.
std::filesystem::path backbone_folder(const Locations& locations, const std::string& backbone,
                                      const std::filesystem::path& relative_to);

}  // namespace petlab::sweeps
