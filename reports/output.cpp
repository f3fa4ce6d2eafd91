#include "reports/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "reports/error.h"

namespace petlab::reports {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target), path_(target.string() + ".XXXXXX") {
    // The rename would put a file in the place of a device or a pipe.
    struct stat status {};
    if (stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      throw Error(
          fmt::format("{}: is no regular file, must be one, or not be there yet; name "
                      "another folder with --out",
                      target.string()));
    }
    descriptor_ = mkstemp(path_.data());
    if (descriptor_ < 0) fail("make a file beside it");
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write_all(const std::string& content) {
    std::size_t done = 0;
    while (done < content.size()) {
      const ssize_t count = write(descriptor_, content.data() + done, content.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write it");
      done += static_cast<std::size_t>(count);
    }
  }
  void rename_to_target() {
    constexpr mode_t kReadable = 0644;  // mkstemp's files are their owner's alone
    if (fchmod(descriptor_, kReadable) != 0 || fsync(descriptor_) != 0) fail("write it");
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail("give it its name");
    path_.clear();
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(fmt::format("{}: cannot {}: {}; name another folder with --out", target_.string(),
                            what, std::strerror(errno)));
  }

  std::filesystem::path target_;
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

std::vector<std::filesystem::path> write_files(const Table& table,
                                               const std::filesystem::path& folder,
                                               std::span<const Format* const> formats) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw Error(fmt::format(
        "{}: cannot make the folder: {}; name another with --out", folder.string(),
        std::filesystem::exists(folder) ? "there is a file of that name" : error.message()));
  }
  std::vector<std::filesystem::path> written;
  for (const Format* format : formats) {
    const std::filesystem::path target = folder / (table.name + std::string(format->extension));
    TemporaryFile file(target);
    file.write_all(format->render(table, {}));
    file.rename_to_target();
    written.push_back(target);
  }
  return written;
}

}  // namespace petlab::reports
