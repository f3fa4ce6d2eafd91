#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/sha256.h"
#include "exchange/archive.h"
#include "exchange/archive_format.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBlock = std::size_t{1} << 18;

/// Unpacks an untrusted archive entry by entry.
class Unpacking {
 public:
  Unpacking(const fs::path& file, const fs::path& folder)
      : file_(file), folder_(folder), archive_(archive_read_new(), &archive_read_free) {
    if (!archive_) throw Error("libarchive cannot be initialised");
    archive_read_support_format_tar(archive_.get());
    archive_read_support_filter_gzip(archive_.get());
    if (archive_read_open_filename(archive_.get(), file.c_str(), kReadBlock) != ARCHIVE_OK) {
      refuse("cannot be read as a petlab archive" + library_says());
    }
  }

  void unpack() {
    if (!next() || name_ != kArchiveList) {
      refuse(fmt::format("is not a petlab archive: its first entry must be {}", kArchiveList));
    }
    list_ = parse_archive_list(read_list(), file_);
    check_room();
    while (next()) write_entry();
    for (const auto& [name, wanted] : list_.files) {
      if (!written_.contains(name)) refuse_entry(name, "it is missing: the archive is truncated");
    }
    for (const auto& [folder, names] : list_.left_out) {
      const fs::path attempt = folder_ / folder;
      std::error_code error;
      if (!fs::is_directory(attempt, error)) continue;
      write_merge_note(attempt,
                       {file_.string(), protocol::TrialDirectory(attempt).attempt(), {}, names});
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: {}; nothing was imported", file_.string(), what));
  }
  [[noreturn]] void refuse_entry(const std::string& name, const std::string& what) const {
    refuse(fmt::format("entry {}: {}", shown_name(name), what));
  }
  std::string library_says() const {
    const char* const why = archive_error_string(archive_.get());
    return why == nullptr ? std::string() : fmt::format(" ({})", why);
  }

  /// Reads the next entry's header, which must be a regular file's. Returns false at the end.
  bool next() {
    const std::string before = name_;
    archive_entry* entry = nullptr;
    const int found = archive_read_next_header(archive_.get(), &entry);
    if (found == ARCHIVE_EOF) return false;
    if (found != ARCHIVE_OK && found != ARCHIVE_WARN) {
      refuse(before.empty() ? "cannot be read as a petlab archive" + library_says()
                            : fmt::format("the data after entry {} is truncated or damaged{}",
                                          shown_name(before), library_says()));
    }
    const char* const path = archive_entry_pathname(entry);
    if (path == nullptr)
      refuse(fmt::format("the entry after {} has no readable name", shown_name(before)));
    name_ = path;
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr ||
        archive_entry_filetype(entry) == AE_IFLNK) {
      refuse_entry(name_, "it is a link, expected a file");
    }
    if (name_ != kArchiveList) {
      if (const std::string why = why_no_archive_name(name_); !why.empty()) {
        refuse_entry(name_, why);
      }
    }
    if (archive_entry_filetype(entry) != AE_IFREG) {
      refuse_entry(name_, "it is a folder or a device, expected a file");
    }
    if (archive_entry_size_is_set(entry) == 0 || archive_entry_size(entry) < 0) {
      refuse_entry(name_, "its size is missing");
    }
    size_ = static_cast<std::uintmax_t>(archive_entry_size(entry));
    return true;
  }

  /// Calls `take` with the entry's bytes, at most `most` in total.
  template <typename Take>
  void read_entry(std::uintmax_t most, const Take& take) {
    std::uintmax_t left = most;
    while (true) {
      const la_ssize_t got = archive_read_data(archive_.get(), block_.data(), block_.size());
      if (got == 0) return;
      if (got < 0) refuse_entry(name_, "it is truncated or damaged" + library_says());
      if (static_cast<std::uintmax_t>(got) > left) {
        refuse_entry(name_, fmt::format("it is longer than its recorded {} bytes", most));
      }
      left -= static_cast<std::uintmax_t>(got);
      take(block_.data(), static_cast<std::size_t>(got));
    }
  }

  std::string read_list() {
    if (size_ > kLargestArchiveList) {
      refuse_entry(name_,
                   fmt::format("it has {} bytes, expected at most {}", size_, kLargestArchiveList));
    }
    std::string text;
    read_entry(size_, [&](const char* data, std::size_t size) { text.append(data, size); });
    return text;
  }

  void check_room() const {
    std::error_code error;
    const fs::space_info space = fs::space(folder_, error);
    if (error) return;
    // Files are stored twice until they are merged.
    const std::uintmax_t room = space.available / 2;
    std::uintmax_t sum = 0;
    std::pair<std::uintmax_t, std::string> largest;
    for (const auto& [name, file] : list_.files) {
      largest = std::max(largest, {file.size, name});
      sum = file.size > UINTMAX_MAX - sum ? UINTMAX_MAX : sum + file.size;
    }
    if (sum <= room) return;
    refuse_entry(largest.second,
                 fmt::format("it has {} bytes of {} in total, but the disk has room for {}",
                             largest.first, sum, room));
  }

  void write_entry() {
    const auto wanted = list_.files.find(name_);
    if (wanted == list_.files.end()) refuse_entry(name_, "the archive's list does not contain it");
    if (!written_.insert(name_).second) refuse_entry(name_, "it occurs twice");
    if (size_ != wanted->second.size) {
      refuse_entry(name_, fmt::format("it has {} bytes, the archive's list records {}", size_,
                                      wanted->second.size));
    }
    const fs::path to = folder_ / name_;
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (error) refuse_to_write(to, error.value());
    const base::FileDescriptor out(
        ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!out) refuse_to_write(to, errno);
    base::Sha256 hash;
    std::uintmax_t got = 0;
    read_entry(size_, [&](const char* data, std::size_t size) {
      hash.add(data, size);
      got += size;
      if (!base::write_all(out.get(), {data, size})) refuse_to_write(to, errno);
    });
    if (got != size_) {
      refuse_entry(name_,
                   fmt::format("it has {} bytes of {}: the archive is truncated", got, size_));
    }
    if (const std::string digest = hash.finish(); digest != wanted->second.digest) {
      refuse_entry(name_, fmt::format("its content has digest {}, the archive's list records {}",
                                      digest, wanted->second.digest));
    }
  }

  [[noreturn]] static void refuse_to_write(const fs::path& file, int error) {
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(error)));
  }

  const fs::path& file_;
  const fs::path& folder_;
  std::unique_ptr<archive, decltype(&archive_read_free)> archive_;
  ArchiveList list_;
  std::set<std::string> written_;
  std::string name_;  // of the current entry
  std::uintmax_t size_ = 0;
  std::vector<char> block_ = std::vector<char>(kReadBlock);
};

}  // namespace

fs::path unpack_archive(const fs::path& file, const Incoming& incoming) {
  const fs::path folder = incoming.folder() / "unpacked";
  std::error_code error;
  fs::create_directory(folder, error);
  if (error)
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  Unpacking(file, folder).unpack();
  const fs::path runs = folder / "runs";
  fs::create_directory(runs, error);
  return runs;
}

}  // namespace petlab::exchange
