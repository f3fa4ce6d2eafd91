#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fetch/hub.h"

namespace petlab::fetch {

struct BackboneRequest {
  std::string name;               // on the hub
  std::string revision = "main";  // a branch, a tag, a commit
  std::filesystem::path into;     // plain files in this folder; empty: Hugging Face's cache
  std::filesystem::path digests;  // where digests of files are remembered (Locations::cache)
};

struct FetchedBackbone {
  std::string commit;
  std::filesystem::path folder;  // of its files
  std::size_t files = 0;
  std::uintmax_t bytes = 0;
};

/// Downloads what petlab reads of a model, where it is not there already, and compares it with the
/// hub's digests, also what was there. Nothing has its final name before all of it is whole; what
/// was downloaded stays when it throws, and the next call goes on there. Several at once share the
/// work. Throws std::invalid_argument for a name or revision that cannot be, Error (fetch/error.h),
/// sweeps::Error.
FetchedBackbone fetch_backbone(const BackboneRequest& request, const HubSettings& settings,
                               Http& http, const Watcher& watcher);

/// A download's content put where it belongs: waits for others that download it, goes on with what
/// is there of it in `partial`, and compares it. Where what was gone on with is not what it should
/// be, it begins anew, once. `get` downloads to `partial`, `is_right` compares a file.
struct WholeFile {
  std::string name;
  std::filesystem::path content;
  std::filesystem::path partial;
  std::filesystem::path lock;
  std::function<void()> get;
  std::function<bool(const std::filesystem::path&)> is_right;
};
void fetch_whole(const WholeFile& file, const Watcher& watcher);

/// Throws Error where the disk of `folder` has less than `bytes` free.
void require_space(const std::filesystem::path& folder, std::uintmax_t bytes);

}  // namespace petlab::fetch
