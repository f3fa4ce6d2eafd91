#include "fetch/backbone_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/shallow_json.h"
#include "fetch/error.h"
#include "sweeps/error.h"

namespace petlab::fetch {
namespace {

namespace fs = std::filesystem;

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  }
}

void rename_over(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Error(fmt::format("{}: cannot be created: {}", to.string(), error.message()));
}

void sync_folder(const fs::path& folder) {
  const base::FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open) ::fsync(open.get());
}

std::optional<BackbonePlace::Record> read_record(const fs::path& file) {
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return std::nullopt;
  try {
    const nlohmann::json json =
        base::parse_shallow_json(base::read_file(file, 16 << 20), file.string());
    if (json.at("v") != 1) return std::nullopt;
    BackbonePlace::Record record;
    json.at("name").get_to(record.name);
    json.at("commit").get_to(record.commit);
    for (const nlohmann::json& each : json.at("files")) {
      record.files.push_back({each.at("name"), each.at("size"), each.at("etag")});
    }
    return record;
  } catch (const std::exception&) {
    return std::nullopt;  // treated as missing, so the hub is queried again
  }
}

void write_record(const fs::path& file, const BackbonePlace::Record& record) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const HubFile& each : record.files) {
    files.push_back({{"name", each.name}, {"size", each.size}, {"etag", each.etag}});
  }
  const nlohmann::ordered_json json = {
      {"v", 1}, {"name", record.name}, {"commit", record.commit}, {"files", files}};
  base::write_file_atomically(file, json.dump(1) + "\n");
}

// The configuration is published last: see publish().
std::vector<HubFile> configuration_last(std::vector<HubFile> files) {
  std::stable_partition(files.begin(), files.end(),
                        [](const HubFile& file) { return file.name != "config.json"; });
  return files;
}

class CachePlace : public BackbonePlace {
 public:
  CachePlace(const fs::path& hub, const std::string& name)
      : model_(hub / folder_name(name)), locks_(hub / ".locks" / folder_name(name)) {}
  fs::path folder(const std::string& commit) const override {
    return model_ / "snapshots" / commit;
  }
  fs::path content(const HubFile& file) const override { return model_ / "blobs" / file.etag; }
  fs::path partial(const HubFile& file) const override {
    return model_ / "blobs" / (file.etag + ".incomplete");
  }
  fs::path lock(const HubFile& file) const override { return locks_ / (file.etag + ".lock"); }
  fs::path lock_of_all() const override { return {}; }
  void prepare(const std::string&, const std::vector<HubFile>&,
               sweeps::FileDigests&) const override {
    for (const fs::path& each : {model_ / "blobs", model_ / "snapshots", model_ / "refs", locks_}) {
      make_folders(each);
    }
  }
  void publish(const Record& record) const override {
    const fs::path snapshot = folder(record.commit);
    make_folders(snapshot);
    for (const HubFile& file : configuration_last(record.files)) {
      const fs::path target = fs::path("../../blobs") / file.etag;
      std::error_code error;
      if (fs::read_symlink(snapshot / file.name, error) == target && !error) continue;
      const fs::path temporary = snapshot / fmt::format(".{}.petlab-{}", file.name, ::getpid());
      fs::remove(temporary, error);
      fs::create_symlink(target, temporary, error);
      if (error) {
        throw Error(
            fmt::format("{}: cannot create a link there: {}; write plain files with --into DIR",
                        snapshot.string(), error.message()));
      }
      rename_over(temporary, snapshot / file.name);
    }
    sync_folder(snapshot);
    make_folders(model_ / kRecords);
    write_record(record_file(record.commit), record);
  }
  std::optional<Record> record(const std::string& commit) const override {
    return read_record(record_file(commit));
  }
  std::string known_commit(const std::string&, const std::string& revision) const override {
    std::error_code unreadable;
    const fs::path ref = ref_file(revision);
    if (!fs::is_regular_file(ref, unreadable)) return "";
    const std::string text = base::read_file(ref, 4096);
    const std::string commit = text.substr(0, text.find_first_of(" \t\r\n"));
    return is_commit(commit) ? commit : "";
  }
  void note_commit(const std::string& revision, const std::string& commit) const override {
    if (revision == commit || known_commit("", revision) == commit) return;
    make_folders(ref_file(revision).parent_path());
    base::write_file_atomically(ref_file(revision), commit);
  }

 private:
  // A folder next to those of Hugging Face's library, which ignores it.
  static constexpr const char* kRecords = "petlab";
  fs::path record_file(const std::string& commit) const {
    return model_ / kRecords / (commit + ".json");
  }
  fs::path ref_file(const std::string& revision) const { return model_ / "refs" / revision; }
  fs::path model_;
  fs::path locks_;
};

class FolderPlace : public BackbonePlace {
 public:
  explicit FolderPlace(fs::path folder) : folder_(std::move(folder)) {}
  fs::path folder(const std::string&) const override { return folder_; }
  fs::path content(const HubFile& file) const override { return own_ / file.etag; }
  fs::path partial(const HubFile& file) const override {
    return own_ / (file.etag + ".incomplete");
  }
  fs::path lock(const HubFile&) const override { return own_ / "file.lock"; }
  fs::path lock_of_all() const override { return own_ / "all.lock"; }
  void prepare(const std::string&, const std::vector<HubFile>& files,
               sweeps::FileDigests& digests) const override {
    std::error_code unreadable;
    for (const HubFile& file : files) {
      const fs::path path = folder_ / file.name;
      if (read_record(record_file()) || !fs::exists(path, unreadable)) continue;
      if (has_digest(path, file.etag, digests)) continue;
      throw Error(
          fmt::format("{}: exists, but differs from the file to fetch; --into needs a new folder, "
                      "or one created by petlab fetch",
                      path.string()));
    }
    make_folders(own_);
  }
  void publish(const Record& record) const override {
    std::error_code error;
    const std::optional<Record> before = read_record(record_file());
    if (before && before->commit != record.commit) take_away(*before, record);
    for (const HubFile& file : configuration_last(record.files)) {
      if (fs::exists(content(file), error)) rename_over(content(file), folder_ / file.name);
    }
    sync_folder(folder_);
    write_record(record_file(), record);
  }
  std::optional<Record> record(const std::string& commit) const override {
    std::optional<Record> found = read_record(record_file());
    if (found && found->commit != commit) return std::nullopt;
    return found;
  }
  std::string known_commit(const std::string& name, const std::string&) const override {
    const std::optional<Record> found = read_record(record_file());
    return found && found->name == name ? found->commit : "";
  }
  void note_commit(const std::string&, const std::string&) const override {}

 private:
  // Files of two commits must never mix, and without config.json the folder is not used as a
  // backbone.
  void take_away(const Record& before, const Record& record) const {
    std::error_code error;
    for (const HubFile& old : configuration_last(before.files)) {
      const auto same = std::find_if(record.files.begin(), record.files.end(),
                                     [&](const HubFile& file) { return file.name == old.name; });
      if (same == record.files.end()) fs::remove(folder_ / old.name, error);
    }
    const auto configuration =
        std::find_if(record.files.begin(), record.files.end(),
                     [](const HubFile& file) { return file.name == "config.json"; });
    // Keep an unchanged configuration in the place of downloaded content.
    if (fs::exists(folder_ / "config.json", error) && !fs::exists(content(*configuration), error)) {
      rename_over(folder_ / "config.json", content(*configuration));
    }
    fs::remove(folder_ / "config.json", error);
  }
  fs::path record_file() const { return own_ / "fetched.json"; }
  fs::path folder_;
  fs::path own_ = folder_ / ".petlab";
};

}  // namespace

std::unique_ptr<BackbonePlace> cache_place(const fs::path& hub, const std::string& name) {
  return std::make_unique<CachePlace>(hub, name);
}

std::unique_ptr<BackbonePlace> folder_place(const fs::path& folder) {
  return std::make_unique<FolderPlace>(folder);
}

}  // namespace petlab::fetch
