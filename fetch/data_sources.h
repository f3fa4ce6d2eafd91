#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace petlab::fetch {

/// A file that is downloaded, known beforehand.
struct DataFile {
  std::string path;  // behind the server's address
  std::uintmax_t size = 0;
  std::string sha256;
};

/// Where a built-in task's data come from, and what is made of them.
struct DataSource {
  /// How the files of the task come out of what is downloaded.
  enum class Form {
    zip,   ///< members `Folder/name` of the one archive, as they are
    mrpc,  ///< the ids of the development rows, and the rows that these are taken out of
  };
  std::string task;    // a row of sweeps::tasks()
  std::string folder;  // in a data folder: "glue/CoLA"
  std::vector<DataFile> downloads;
  std::vector<std::string> files;  // in `folder`
  Form form = Form::zip;
};

/// The server that holds all of them, under the paths of DataFile.
inline constexpr const char* kDataServer = "https://dl.fbaipublicfiles.com";

/// GLUE's tasks, in the order of the catalog: the original files, pinned by size and SHA-256.
std::span<const DataSource> data_sources();

}  // namespace petlab::fetch
