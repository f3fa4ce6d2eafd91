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

/// The hub's address and token, from the variables of Hugging Face's libraries: HF_ENDPOINT,
/// HF_TOKEN (else HF_TOKEN_PATH, else $HF_HOME/token), HF_HUB_OFFLINE.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // without a trailing slash
  std::string token;                                // empty: none
  bool offline = false;
  std::filesystem::path cache;  // sweeps::find_hub_cache; may be empty
};
/// Throws std::invalid_argument if HF_ENDPOINT is not an http or https URL, or the token has
/// several lines.
HubSettings hub_settings(const sweeps::Environment& environment);

/// A file of a model, as the hub lists it.
struct HubFile {
  std::string name;
  std::uintmax_t size = 0;
  /// SHA-256 of a large file (64 hexadecimal digits) or git's blob id of a small one (40); names
  /// the content in the cache.
  std::string etag;
  bool operator==(const HubFile&) const = default;
};

/// Parses a page of the hub's listing, /api/models/NAME/tree/COMMIT, without folders. Throws Error
/// with `name` if the text is not a listing.
std::vector<HubFile> parse_listing(std::string_view text, const std::string& name);

/// Selects the files that petlab reads: configuration, tokenizer, and the weights that the trainer
/// would load; of a sharded checkpoint only the index, which names its shards. Throws Error with
/// `name` if one of the three is missing.
std::vector<HubFile> files_to_fetch(const std::vector<HubFile>& listing, const std::string& name);

/// True if the file's content matches the hub's digest. Throws Error or sweeps::Error if it cannot
/// be read.
bool has_digest(const std::filesystem::path& file, const std::string& etag,
                sweeps::FileDigests& digests);

/// A repository on the hub. The messages of its HttpErrors and NoConnections suggest a fix.
class HubRepository {
 public:
  /// `name` is the name on the hub: "owner/name", or "name" for old models. Throws
  /// std::invalid_argument for any other form.
  HubRepository(Http& http, HubSettings settings, std::string name);

  /// Resolves a branch, a tag or a commit's prefix to a commit, with one request.
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

/// True for 40 hexadecimal digits.
bool is_commit(std::string_view revision);

}  // namespace petlab::fetch
