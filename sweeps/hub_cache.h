#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::sweeps {

/// The folder in which Hugging Face's libraries keep what they have downloaded: HF_HUB_CACHE, else
/// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else $HOME/.cache/huggingface/hub. Empty
/// where none of them is set.
std::filesystem::path find_hub_cache(const Environment& environment);

/// A model in that folder.
struct CachedModel {
  std::string repository;          // "FacebookAI/roberta-base", or "roberta-base" without an owner
  std::filesystem::path snapshot;  // its files at the revision `main`
  bool complete = false;           // config.json and weights are there
  bool operator==(const CachedModel&) const = default;
};

/// The models that `name` may mean: as "owner/name" that one, as "name" those of any owner, as ""
/// all of them. In the order of their names. A model counts at the revision that refs/main names,
/// or at its only one. Never throws: what cannot be read is not there.
std::vector<CachedModel> cached_models(const std::filesystem::path& hub, const std::string& name);

}  // namespace petlab::sweeps
