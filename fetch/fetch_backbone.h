#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fetch/hub.h"

namespace petlab::fetch {

struct BackboneRequest {
  std::string name;               // name on the hub
  std::string revision = "main";  // a branch, tag or commit
  std::filesystem::path into;     // folder for plain files; empty: Hugging Face's cache
  std::filesystem::path digests;  // cache of file digests (Locations::cache)
};

struct FetchedBackbone {
  std::string commit;
  std::filesystem::path folder;  // folder of the files
  std::size_t files = 0;
  std::uintmax_t bytes = 0;
};

/// Downloads the missing files that petlab reads of a model and verifies all of them, including
/// existing ones, against the hub's digests. No file gets its final name before all are complete.
/// Downloaded parts are kept on errors, and the next call resumes them; parallel calls share the
/// work. Throws std::invalid_argument for an impossible name or revision, Error (fetch/error.h) and
/// sweeps::Error.
FetchedBackbone fetch_backbone(const BackboneRequest& request, const HubSettings& settings,
                               Http& http, const Watcher& watcher);

/// Completes one download: waits for other processes that download it, resumes from the contents of
/// `partial`, and verifies the result. If a resumed download does not match, it starts over once.
/// `get` downloads to `partial`, `is_right` verifies a file.
struct WholeFile {
  std::string name;
  std::filesystem::path content;
  std::filesystem::path partial;
  std::filesystem::path lock;
  std::function<void()> get;
  std::function<bool(const std::filesystem::path&)> is_right;
};
void fetch_whole(const WholeFile& file, const Watcher& watcher);

/// Throws Error if the disk of `folder` has less than `bytes` free.
void require_space(const std::filesystem::path& folder, std::uintmax_t bytes);

}  // namespace petlab::fetch
