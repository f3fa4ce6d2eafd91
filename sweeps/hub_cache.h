#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::sweeps {

/// The download folder of Hugging Face's libraries: HF_HUB_CACHE, else $HF_HOME/hub, else
/// $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub. Empty if none of these
/// variables is set.
std::filesystem::path find_hub_cache(const Environment& environment);

/// A model's name on the hub, and a revision.
struct HubName {
  std::string name;      // "FacebookAI/roberta-base", or "bert-base-uncased" without an owner
  std::string revision;  // a branch, tag, commit or a commit's prefix; empty: not given
};
/// Parses "owner/name@revision"; std::nullopt for impossible names, such as a path with two slashes
/// or with a part that begins with a dot.
std::optional<HubName> parse_hub_name(const std::string& text);

/// A model in the download folder.
struct CachedModel {
  std::string repository;          // "FacebookAI/roberta-base", or "roberta-base" without an owner
  std::filesystem::path snapshot;  // folder with its files at the revision; empty: see `revisions`
  bool complete = false;           // config.json and weights exist
  std::vector<std::string> revisions;  // the existing commits, if none could be chosen
  bool operator==(const CachedModel&) const = default;
};

/// The models that `name` may mean, sorted by name: the model "owner/name", models "name" of any
/// owner, or for "" all models. The revision is `revision` (a branch, tag, commit or a commit's
/// prefix), else the commit of refs/main, else the only one. Never throws: unreadable entries are
/// treated as missing.
std::vector<CachedModel> cached_models(const std::filesystem::path& hub, const std::string& name,
                                       const std::string& revision = "");

}  // namespace petlab::sweeps
