#include "fetch/fetch_backbone.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "fetch/backbone_place.h"
#include "fetch/error.h"
#include "fetch/file_lock.h"
#include "sweeps/backbone_files.h"

namespace petlab::fetch {
namespace {

namespace fs = std::filesystem;

std::uintmax_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

// True if the file is complete, published or not.
bool is_whole(const BackbonePlace& place, const std::string& commit, const HubFile& file,
              sweeps::FileDigests& digests) {
  for (const fs::path& at : {place.folder(commit) / file.name, place.content(file)}) {
    std::error_code error;
    if (fs::is_regular_file(at, error) && size_of(at) == file.size &&
        has_digest(at, file.etag, digests)) {
      return true;
    }
  }
  return false;
}

bool is_published(const BackbonePlace& place, const BackbonePlace::Record& record,
                  sweeps::FileDigests& digests) {
  return std::all_of(record.files.begin(), record.files.end(), [&](const HubFile& file) {
    const fs::path at = place.folder(record.commit) / file.name;
    std::error_code error;
    return fs::is_regular_file(at, error) && size_of(at) == file.size &&
           has_digest(at, file.etag, digests);
  });
}

struct Fetcher {
  const BackbonePlace& place;
  const HubRepository& hub;
  const std::string& commit;
  sweeps::FileDigests& digests;
  const Watcher& watcher;

  void fetch(const std::vector<HubFile>& files) const {
    std::vector<HubFile> missing;
    std::uintmax_t bytes = 0;
    for (const HubFile& file : files) {
      if (is_whole(place, commit, file, digests)) continue;
      missing.push_back(file);
      bytes += file.size - std::min(file.size, size_of(place.partial(file)));
    }
    if (missing.empty()) return;
    require_space(place.partial(missing.front()).parent_path(), bytes);
    for (const HubFile& file : missing) {
      fetch_whole({file.name, place.content(file), place.partial(file), place.lock(file),
                   [&] { hub.download(commit, file, place.partial(file)); },
                   [&](const fs::path& at) { return has_digest(at, file.etag, digests); }},
                  watcher);
    }
  }
};

void check_revision(const std::string& revision) {
  const bool outside = revision.empty() || revision.front() == '/' || revision.front() == '-' ||
                       revision.find("..") != std::string::npos ||
                       revision.find_first_of(" \t\r\n\\") != std::string::npos;
  if (!outside) return;
  throw std::invalid_argument(
      fmt::format("--revision is '{}', must be a branch, a tag or a commit", revision));
}

// The shards named by the checkpoint's index, if any, as listed by the hub.
std::vector<HubFile> shards_listed(const BackbonePlace& place, const std::string& commit,
                                   const std::vector<HubFile>& wanted,
                                   const std::vector<HubFile>& listing, const std::string& name) {
  std::vector<HubFile> shards;
  for (const HubFile& index : wanted) {
    if (!index.name.ends_with(".index.json")) continue;
    std::error_code error;
    const fs::path waiting = place.content(index);
    const fs::path at = fs::exists(waiting, error) ? waiting : place.folder(commit) / index.name;
    for (const std::string& shard : sweeps::shards_of(at)) {
      const auto found = std::find_if(listing.begin(), listing.end(),
                                      [&](const HubFile& file) { return file.name == shard; });
      if (found == listing.end()) {
        throw Error(
            fmt::format("{}: {} names {}, which the hub does not list", name, index.name, shard));
      }
      shards.push_back(*found);
    }
  }
  return shards;
}

FetchedBackbone what_is_there(const BackbonePlace& place, const BackbonePlace::Record& record) {
  FetchedBackbone fetched{record.commit, place.folder(record.commit), record.files.size(), 0};
  for (const HubFile& file : record.files) fetched.bytes += file.size;
  return fetched;
}

}  // namespace

void require_space(const fs::path& folder, std::uintmax_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= bytes) return;
  constexpr double kMega = 1e6;
  throw Error(fmt::format("{}: the download has {:.1f} MB, but the disk has only {:.1f} MB free",
                          folder.string(), static_cast<double>(bytes) / kMega,
                          static_cast<double>(space.available) / kMega));
}

void fetch_whole(const WholeFile& file, const Watcher& watcher) {
  const FileLock lock(file.lock, file.name, watcher);
  std::error_code error;
  if (fs::is_regular_file(file.content, error)) {
    if (file.is_right(file.content)) return;  // another process completed it
    watcher.tell(fmt::format("{}: the existing file is damaged; downloading it again", file.name));
  }
  for (bool again = false;; again = true) {
    const bool resumed = size_of(file.partial) > 0;
    file.get();
    if (file.is_right(file.partial)) break;
    fs::remove(file.partial, error);
    if (!resumed || again) {
      throw Error(
          fmt::format("{}: the downloaded file has the wrong digest and was deleted; try again, or "
                      "use another network: something on the way changes the data",
                      file.name));
    }
    watcher.tell(fmt::format(
        "{}: the partial file of an earlier download is damaged; starting again", file.name));
  }
  fs::rename(file.partial, file.content, error);
  if (error) {
    throw Error(fmt::format("{}: cannot be created: {}", file.content.string(), error.message()));
  }
}

FetchedBackbone fetch_backbone(const BackboneRequest& request, const HubSettings& settings,
                               Http& http, const Watcher& watcher) {
  check_revision(request.revision);
  const HubRepository hub(http, settings, request.name);
  if (request.into.empty() && settings.cache.empty()) {
    throw std::invalid_argument(
        "none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME is set; set one to place Hugging "
        "Face's cache, or name a folder with --into");
  }
  const std::unique_ptr<BackbonePlace> place = request.into.empty()
                                                   ? cache_place(settings.cache, request.name)
                                                   : folder_place(fs::absolute(request.into));
  sweeps::FileDigests digests(request.digests);
  std::string commit = is_commit(request.revision) ? request.revision : "";
  if (commit.empty()) {
    commit = settings.offline ? place->known_commit(request.name, request.revision)
                              : hub.resolve(request.revision);
  }
  BackbonePlace::Record record{request.name, commit, {}};
  const std::optional<BackbonePlace::Record> known = place->record(commit);
  if (known && known->name == request.name && is_published(*place, *known, digests)) {
    if (!settings.offline) place->note_commit(request.revision, commit);
    return what_is_there(*place, *known);
  }
  if (settings.offline) {
    throw Error(
        fmt::format("{}: revision {} is not in the cache, and HF_HUB_OFFLINE (or "
                    "TRANSFORMERS_OFFLINE) forbids downloading it: unset it",
                    request.name, request.revision));
  }
  const std::vector<HubFile> listing = hub.list(commit);
  record.files = files_to_fetch(listing, request.name);
  place->prepare(commit, record.files, digests);
  std::optional<FileLock> all;
  if (const fs::path lock = place->lock_of_all(); !lock.empty()) {
    all.emplace(lock, request.name, watcher);
    const std::optional<BackbonePlace::Record> by_another = place->record(commit);
    if (by_another && is_published(*place, *by_another, digests)) {
      return what_is_there(*place, *by_another);
    }
  }
  const Fetcher fetcher{*place, hub, commit, digests, watcher};
  fetcher.fetch(record.files);
  const std::vector<HubFile> shards =
      shards_listed(*place, commit, record.files, listing, request.name);
  place->prepare(commit, shards, digests);
  fetcher.fetch(shards);
  record.files.insert(record.files.end(), shards.begin(), shards.end());
  place->publish(record);
  place->note_commit(request.revision, commit);
  return what_is_there(*place, record);
}

}  // namespace petlab::fetch
