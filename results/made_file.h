#pragma once

#include <filesystem>

namespace petlab::results::internal {

/// A database file under construction. It has a temporary name next to its final one, so that no
/// process sees it incomplete. The file stays locked during the object's lifetime, and the
/// temporary name is removed at the end.
class MadeFile {
 public:
  explicit MadeFile(std::filesystem::path file);
  ~MadeFile();
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;

  const std::filesystem::path& name() const { return name_; }
  /// Renames it to `file`; returns false if that exists, and never replaces it. Throws Error.
  bool keep();
  /// Renames it to `file`, and replaces an existing one. Throws Error.
  void replace();
  /// Syncs the contents to disk. Throws Error.
  void sync() const;
  /// Syncs the name to disk. Throws Error.
  void sync_folder() const;

 private:
  std::filesystem::path file_;
  std::filesystem::path name_;
  int lock_ = -1;
};

/// Removes temporary files left by processes that were killed while creating `file`.
void remove_abandoned(const std::filesystem::path& file);

}  // namespace petlab::results::internal
