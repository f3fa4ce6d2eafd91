#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::sweeps {

/// The folder in which Hugging Face's libraries keep what they have downloaded: HF_HUB_CACHE, else
/// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub. Empty
/// where none of them is set.
std::filesystem::path find_hub_cache(const Environment& environment);

/// A model as the hub calls it, and a revision of it.
struct HubName {
  std::string name;      // "FacebookAI/roberta-base", or "bert-base-uncased" without an owner
  std::string revision;  // a branch, a tag, a commit or the beginning of one; empty: not named
};
/// The parts of "owner/name@revision"; std::nullopt for what can be no name on the hub, as a path
/// with two slashes, or with a part that begins with a dot.
std::optional<HubName> parse_hub_name(const std::string& text);

/// A model in that folder.
struct CachedModel {
  std::string repository;          // "FacebookAI/roberta-base", or "roberta-base" without an owner
  std::filesystem::path snapshot;  // its files at the revision; empty: `revisions` says why
  bool complete = false;           // config.json and weights are there
  std::vector<std::string> revisions;  // where none counts: the commits that are there
  bool operator==(const CachedModel&) const = default;
};

/// The models that `name` may mean: as "owner/name" that one, as "name" those of any owner, as ""
/// all of them. In the order of their names. A model counts at `revision` (a branch, a tag, a
/// commit or the beginning of one), where it is empty at the one that refs/main names, or at its
/// only one. Never throws: what cannot be read is not there.
std::vector<CachedModel> cached_models(const std::filesystem::path& hub, const std::string& name,
                                       const std::string& revision = "");

}  // namespace petlab::sweeps
