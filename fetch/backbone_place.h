#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fetch/hub.h"

namespace petlab::fetch {

/// Where a model's files lie on this machine: in Hugging Face's cache, laid out as its own library
/// does (blobs/, snapshots/COMMIT/, refs/), or as plain files in a folder of their own. A file is
/// downloaded beside its place, and gets its name when it is whole.
class BackbonePlace {
 public:
  /// Which files one commit's model has here: what fetch() has published.
  struct Record {
    std::string name;
    std::string commit;
    std::vector<HubFile> files;
  };

  virtual ~BackbonePlace() = default;
  /// The folder of the model's files at that commit.
  virtual std::filesystem::path folder(const std::string& commit) const = 0;
  /// Where a file's content waits until all are there, whole.
  virtual std::filesystem::path content(const HubFile& file) const = 0;
  virtual std::filesystem::path partial(const HubFile& file) const = 0;
  virtual std::filesystem::path lock(const HubFile& file) const = 0;
  /// Held from before the first download until all is published; empty: files alone are locked.
  virtual std::filesystem::path lock_of_all() const = 0;
  /// Makes the folders. Throws Error where they cannot be made, or where the folder holds files of
  /// these names that petlab has not fetched.
  virtual void prepare(const std::string& commit, const std::vector<HubFile>& files,
                       sweeps::FileDigests& digests) const = 0;
  /// All contents are there: gives them their names, config.json last, without which no folder is a
  /// backbone's. Throws Error.
  virtual void publish(const Record& record) const = 0;
  /// What was published of that commit; std::nullopt: nothing, or not by petlab.
  virtual std::optional<Record> record(const std::string& commit) const = 0;
  /// The commit that a branch or tag meant when it was fetched last; empty: it never was.
  virtual std::string known_commit(const std::string& name, const std::string& revision) const = 0;
  /// Notes that.
  virtual void note_commit(const std::string& revision, const std::string& commit) const = 0;
};

std::unique_ptr<BackbonePlace> cache_place(const std::filesystem::path& hub,
                                           const std::string& name);
std::unique_ptr<BackbonePlace> folder_place(const std::filesystem::path& folder);

}  // namespace petlab::fetch
