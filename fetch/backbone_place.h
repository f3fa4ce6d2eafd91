#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fetch/hub.h"

namespace petlab::fetch {

/// The location of a model's files on this machine: Hugging Face's cache in its own layout (blobs/,
/// snapshots/COMMIT/, refs/), or a folder of plain files. Files are downloaded next to their final
/// place and renamed when complete.
class BackbonePlace {
 public:
  /// The model files of one commit that were published here.
  struct Record {
    std::string name;
    std::string commit;
    std::vector<HubFile> files;
  };

  virtual ~BackbonePlace() = default;
  /// The folder with the model's files at that commit.
  virtual std::filesystem::path folder(const std::string& commit) const = 0;
  /// The place of a file's verified content until all files are complete.
  virtual std::filesystem::path content(const HubFile& file) const = 0;
  virtual std::filesystem::path partial(const HubFile& file) const = 0;
  virtual std::filesystem::path lock(const HubFile& file) const = 0;
  /// A lock to hold from before the first download until publish(); empty: only single files are
  /// locked.
  virtual std::filesystem::path lock_of_all() const = 0;
  /// Creates the folders. Throws Error if that fails, or if the folder contains files of these
  /// names that petlab has not fetched.
  virtual void prepare(const std::string& commit, const std::vector<HubFile>& files,
                       sweeps::FileDigests& digests) const = 0;
  /// Gives all files their final names once their contents are complete. config.json comes last,
  /// because a folder without it is not used as a backbone. Throws Error.
  virtual void publish(const Record& record) const = 0;
  /// The record of a commit; std::nullopt if petlab has not published it.
  virtual std::optional<Record> record(const std::string& commit) const = 0;
  /// The commit to which a branch or tag last resolved; empty if it was never fetched.
  virtual std::string known_commit(const std::string& name, const std::string& revision) const = 0;
  /// Stores the result for known_commit().
  virtual void note_commit(const std::string& revision, const std::string& commit) const = 0;
};

std::unique_ptr<BackbonePlace> cache_place(const std::filesystem::path& hub,
                                           const std::string& name);
std::unique_ptr<BackbonePlace> folder_place(const std::filesystem::path& folder);

}  // namespace petlab::fetch
