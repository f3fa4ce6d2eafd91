#include "fetch/fetch_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/shallow_json.h"
#include "fetch/error.h"
#include "fetch/fetch_backbone.h"
#include "fetch/file_lock.h"
#include "fetch/unpack.h"
#include "sweeps/identity.h"

namespace petlab::fetch {
namespace {

namespace fs = std::filesystem;

// Text unpacks to about four times the size of its zip, and both exist for a while.
constexpr std::uintmax_t kTimesItsZip = 5;

class DataPlace {
 public:
  DataPlace(const DataSource& source, const fs::path& data_folder)
      : source_(source),
        folder_(fs::absolute(data_folder).lexically_normal() / source.folder),
        downloads_(fs::absolute(data_folder).lexically_normal() / ".petlab-downloads") {}

  const fs::path& folder() const { return folder_; }
  const fs::path& downloads() const { return downloads_; }
  fs::path download(const DataFile& file) const { return downloads_ / file.sha256; }
  fs::path unpacked() const { return downloads_ / source_.task; }
  fs::path lock() const { return downloads_ / (source_.task + ".lock"); }

  bool has(const std::string& name) const {
    std::error_code error;
    return fs::is_regular_file(folder_ / name, error);
  }

  // Digests of the files that petlab has put into the folder; empty if none.
  std::map<std::string, std::string> record() const {
    try {
      const nlohmann::json json =
          base::parse_shallow_json(base::read_file(record_file(), 1 << 20), "record");
      if (json.at("v") == 1) return json.at("files").get<std::map<std::string, std::string>>();
    } catch (const std::exception&) {
      // Without a valid record, the files are treated as the user's.
    }
    return {};
  }

  void write_record(const std::map<std::string, std::string>& digests) const {
    nlohmann::ordered_json from = nlohmann::ordered_json::array();
    for (const DataFile& file : source_.downloads) {
      from.push_back({{"path", file.path}, {"sha256", file.sha256}});
    }
    const nlohmann::ordered_json json = {{"v", 1}, {"files", digests}, {"from", from}};
    base::write_file_atomically(record_file(), json.dump(1) + "\n");
  }

 private:
  fs::path record_file() const { return folder_ / ".petlab-fetched.json"; }
  const DataSource& source_;
  fs::path folder_;
  fs::path downloads_;
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
}

// True if nothing is left to do.
bool is_there(const DataSource& source, const DataPlace& place, FetchedData& fetched) {
  const auto all = [&](const auto& holds) {
    return std::all_of(source.files.begin(), source.files.end(), holds);
  };
  const auto has = [&](const std::string& name) { return place.has(name); };
  const std::map<std::string, std::string> record = place.record();
  fetched.folder = place.folder();
  fetched.was_there = true;
  if (record.empty()) {
    fetched.of_the_user = all(has);
    if (fetched.of_the_user) return true;
    for (const std::string& name : source.files) {
      if (!has(name)) continue;
      throw Error(
          fmt::format("{}: exists without the other files of its task ({}), and petlab did not "
                      "fetch it: move it, or name another folder with --into",
                      (place.folder() / name).string(), fmt::join(source.files, ", ")));
    }
    return false;
  }
  sweeps::FileDigests digests("");
  for (const std::string& name : source.files) {
    const auto known = record.find(name);
    if (!has(name) || known == record.end()) continue;
    if (digests.of(place.folder() / name) == known->second) continue;
    throw Error(fmt::format("{}: has changed since petlab fetched it; move it to fetch it again",
                            (place.folder() / name).string()));
  }
  return all(has);
}

void unpack(const DataSource& source, const DataPlace& place) {
  std::error_code error;
  fs::remove_all(place.unpacked(), error);
  make_folder(place.unpacked());
  if (source.form == DataSource::Form::mrpc) {
    split_mrpc(place.download(source.downloads.at(0)), place.download(source.downloads.at(1)),
               place.unpacked());
  } else {
    unpack_zip(place.download(source.downloads.at(0)), fs::path(source.folder).filename().string(),
               source.files, place.unpacked());
  }
}

}  // namespace

FetchedData fetch_data(const DataSource& source, const fs::path& data_folder,
                       const DownloadTo& download, const Watcher& watcher) {
  const DataPlace place(source, data_folder);
  FetchedData fetched;
  if (is_there(source, place, fetched)) return fetched;
  make_folder(place.downloads());
  const FileLock lock(place.lock(), source.task, watcher);
  if (is_there(source, place, fetched)) return fetched;  // another process completed it
  fetched.was_there = false;
  std::uintmax_t bytes = 0;
  for (const DataFile& file : source.downloads) bytes += file.size;
  require_space(place.downloads(), bytes * kTimesItsZip);
  sweeps::FileDigests digests("");
  for (const DataFile& file : source.downloads) {
    const fs::path partial = place.download(file).string() + ".incomplete";
    fetch_whole({fs::path(file.path).filename().string(), place.download(file), partial,
                 place.download(file).string() + ".lock", [&] { download(file, partial); },
                 [&](const fs::path& at) {
                   return sweeps::FileDigests("").of(at) == "sha256:" + file.sha256;
                 }},
                watcher);
  }
  unpack(source, place);
  std::map<std::string, std::string> record;
  for (const std::string& name : source.files) record[name] = digests.of(place.unpacked() / name);
  make_folder(place.folder());
  // Written before the files get their names: if the process is killed between two renames, the
  // next call recognizes its files.
  place.write_record(record);
  std::error_code error;
  for (const std::string& name : source.files) {
    fs::rename(place.unpacked() / name, place.folder() / name, error);
    if (error) {
      throw Error(fmt::format("{}: cannot be created: {}", (place.folder() / name).string(),
                              error.message()));
    }
  }
  fs::remove_all(place.unpacked(), error);
  for (const DataFile& file : source.downloads) {
    fs::remove(place.download(file), error);
    fs::remove(place.download(file).string() + ".lock", error);
  }
  return fetched;
}

}  // namespace petlab::fetch
