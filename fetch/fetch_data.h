#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "fetch/data_sources.h"
#include "fetch/watcher.h"

namespace petlab::fetch {

struct FetchedData {
  std::filesystem::path folder;
  bool was_there = false;
  /// True if the user provided the files; petlab does not verify them.
  bool of_the_user = false;
};

/// Downloads a file to `to`, resuming from its current contents, and returns when it is complete.
using DownloadTo = std::function<void(const DataFile& file, const std::filesystem::path& to)>;

/// Downloads the missing files of a task to their folder under `data_folder` and verifies their
/// digests. Files that the user provided are left alone. Downloaded parts are kept on errors, and
/// the next call resumes them. Throws Error and sweeps::Error.
FetchedData fetch_data(const DataSource& source, const std::filesystem::path& data_folder,
                       const DownloadTo& download, const Watcher& watcher);

}  // namespace petlab::fetch
