#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace petlab::fetch {

/// A file to download, with known size and digest.
struct DataFile {
  std::string path;  // appended to the server's address
  std::uintmax_t size = 0;
  std::string sha256;
};

/// The source of a built-in task's data, and how to convert it.
struct DataSource {
  /// How to produce the task's files from the downloads.
  enum class Form {
    zip,   ///< extract the members `Folder/name` of the only archive
    mrpc,  ///< split the rows of the second file by the development ids in the first
  };
  std::string task;    // a row of sweeps::tasks()
  std::string folder;  // relative to a data folder: "glue/CoLA"
  std::vector<DataFile> downloads;
  std::vector<std::string> files;  // relative to `folder`
  Form form = Form::zip;
};

/// The server of all data files.
inline constexpr const char* kDataServer = "https://dl.fbaipublicfiles.com";

/// The GLUE tasks in the order of the catalog: the original files, pinned by size and SHA-256.
std::span<const DataSource> data_sources();

}  // namespace petlab::fetch
