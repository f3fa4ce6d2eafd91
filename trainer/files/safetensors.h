#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/files/file_bytes.h"
#include "trainer/files/tensor_view.h"

namespace petlab::trainer {

/// A safetensors file as named views of its mapped bytes, without copies. Opening it checks the
/// whole header: afterwards, all views are inside the file, none overlap, and no byte is left over.
class SafetensorsFile {
 public:
  /// Maps and checks `file`. Throws Error, with the file, the tensor if applicable, what was found
  /// and what was expected.
  static SafetensorsFile open(const std::filesystem::path& file);
  /// The same from existing bytes.
  static SafetensorsFile parse(std::shared_ptr<const FileBytes> file);

  const std::string& name() const { return file_->name(); }
  /// In the order of their data in the file.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view tensor) const { return tensors_.find(tensor) != tensors_.end(); }
  /// Throws Error, with file and tensor, if it is missing.
  const TensorView& tensor(std::string_view tensor) const;
  /// The header's `__metadata__`; empty if absent.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::shared_ptr<const FileBytes> file_;
  std::vector<std::string> names_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes the tensors in the given order (the first aligned to 8 bytes) to a temporary file, syncs
/// and renames it. Throws std::invalid_argument for duplicate names or bytes that do not fit the
/// shape, and Error with the file's name for errors of the system.
void write_safetensors(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, TensorView>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace petlab::trainer
