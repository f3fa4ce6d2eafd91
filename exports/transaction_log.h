#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace petlab::exports {

/// A file of W&B records (`run-….wandb`): a header, then LevelDB's log format, whose blocks of
/// 32 KiB have fragments of records, each with its CRC-32, length and kind. Throws base::Error if
/// the file cannot be written.
class TransactionLog {
 public:
  explicit TransactionLog(std::filesystem::path file);

  void add(std::string_view record);
  /// Throws if some data could not be written.
  void close();

 private:
  void put(std::string_view bytes);

  std::filesystem::path file_;
  std::ofstream out_;
  std::size_t in_block_ = 0;  // bytes of the current block
};

}  // namespace petlab::exports
