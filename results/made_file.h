#pragma once

#include <filesystem>

namespace petlab::results::internal {

/// A database file that is being made beside the one it will be, under another name, so that nobody
/// sees a half-made one. It is locked as long as this lives, and what is left under that name is
/// removed then.
class MadeFile {
 public:
  explicit MadeFile(std::filesystem::path file);
  ~MadeFile();
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;

  const std::filesystem::path& name() const { return name_; }
  /// Gives it the name `file`; false where that exists, which is never replaced. Throws Error.
  bool keep();
  /// Gives it that name in place of what had it. Throws Error.
  void replace();
  /// What it holds is on the disk then. Throws Error.
  void sync() const;
  /// Its name likewise.
  void sync_folder() const;

 private:
  std::filesystem::path file_;
  std::filesystem::path name_;
  int lock_ = -1;
};

/// Removes what processes that were killed while they made `file` left beside it.
void remove_abandoned(const std::filesystem::path& file);

}  // namespace petlab::results::internal
