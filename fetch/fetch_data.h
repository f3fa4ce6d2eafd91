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
  /// The files are there and petlab has not fetched them: they were not compared with anything.
  bool of_the_user = false;
};

/// Downloads a file to `to`, which may hold its beginning, and returns when it has all its bytes.
using DownloadTo = std::function<void(const DataFile& file, const std::filesystem::path& to)>;

/// Brings a task's files to their folder under `data_folder`, whole and compared with their
/// digests, where they are not there. What the user put there himself is left alone. What was
/// downloaded stays when it throws, and the next call goes on there. Throws Error, sweeps::Error.
FetchedData fetch_data(const DataSource& source, const std::filesystem::path& data_folder,
                       const DownloadTo& download, const Watcher& watcher);

}  // namespace petlab::fetch
