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

/// A safetensors file: names to views into its mapped bytes, nothing copied. The whole header is
/// checked when it is opened: afterwards every view lies inside the file, no two overlap and no
/// byte is left over.
class SafetensorsFile {
 public:
  /// Maps and checks `file`. Throws Error naming the file, and where it applies the tensor, what
  /// was found and what was expected.
  static SafetensorsFile open(const std::filesystem::path& file);
  /// The same from bytes that are there already.
  static SafetensorsFile parse(std::shared_ptr<const FileBytes> file);

  const std::string& name() const { return file_->name(); }
  /// In the order of their data in the file.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view tensor) const { return tensors_.find(tensor) != tensors_.end(); }
  /// Throws Error naming file and tensor where it is not there.
  const TensorView& tensor(std::string_view tensor) const;
  /// The header's `__metadata__`; empty where there is none.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::shared_ptr<const FileBytes> file_;
  std::vector<std::string> names_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes the tensors in the given order (the first aligned to 8 bytes) under a temporary name,
/// synced and renamed. Throws std::invalid_argument for a name twice or bytes that do not fit the
/// shape, Error naming the file for what the system refuses.
void write_safetensors(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, TensorView>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace petlab::trainer
