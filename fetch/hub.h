#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fetch/http.h"
#include "sweeps/identity.h"
#include "sweeps/locations.h"

namespace petlab::fetch {

/// Where models come from, as Hugging Face's own libraries are told: HF_ENDPOINT, HF_TOKEN (else
/// HF_TOKEN_PATH, else $HF_HOME/token), HF_HUB_OFFLINE.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a slash at its end
  std::string token;                                // empty: none
  bool offline = false;
  std::filesystem::path cache;  // sweeps::find_hub_cache; may be empty
};
/// Throws std::invalid_argument where HF_ENDPOINT is no http or https URL, or the token is not one
/// line.
HubSettings hub_settings(const sweeps::Environment& environment);

/// A file of a model, as the hub lists it.
struct HubFile {
  std::string name;
  std::uintmax_t size = 0;
  /// The SHA-256 of a large file (64 hexadecimal digits), git's blob id of a small one (40): the
  /// name of its content in the cache.
  std::string etag;
  bool operator==(const HubFile&) const = default;
};

/// Reads a page of the hub's listing, /api/models/NAME/tree/COMMIT, less folders. Throws Error
/// naming `name` where it is none.
std::vector<HubFile> parse_listing(std::string_view text, const std::string& name);

/// Those of `listing` that petlab reads: configuration, tokenizer, and the weights that the trainer
/// would take, of a sharded checkpoint the index alone (its shards are named in it). Throws Error
/// naming `name` where configuration, tokenizer or weights are missing.
std::vector<HubFile> files_to_fetch(const std::vector<HubFile>& listing, const std::string& name);

/// Whether a file has the content that the hub's digest names. Throws Error or sweeps::Error where
/// it cannot be read.
bool has_digest(const std::filesystem::path& file, const std::string& etag,
                sweeps::FileDigests& digests);

/// A repository on the hub, asked for its files. HttpErrors and NoConnections of it say what to do.
class HubRepository {
 public:
  /// `name` as on the hub: "owner/name", or an old model's "name". Throws std::invalid_argument
  /// where it cannot be one.
  HubRepository(Http& http, HubSettings settings, std::string name);

  /// The commit that a branch, a tag or the beginning of a commit means; one request.
  std::string resolve(const std::string& revision) const;
  std::vector<HubFile> list(const std::string& commit) const;
  void download(const std::string& commit, const HubFile& file,
                const std::filesystem::path& to) const;

 private:
  template <typename Body>
  auto ask(Body&& body) const;
  Http& http_;
  HubSettings settings_;
  std::string name_;
};

/// The folder of a model in Hugging Face's cache: "models--owner--name".
std::string folder_name(const std::string& name);

/// 40 hexadecimal digits.
bool is_commit(std::string_view revision);

}  // namespace petlab::fetch
