#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::cli {

/// Writes to a pipe or a terminal without ever waiting for its reader: what cannot be written now,
/// because nobody reads or the terminal is stopped (Ctrl-S), is kept and written later, in order.
/// The descriptor's own flags stay as they are: other programs share them.
class PatientWriter {
 public:
  /// More is not kept: lines are left out then, and their number is told.
  static constexpr std::size_t kMostKept = std::size_t{16} << 20;
  /// finish() gives a terminal up that took nothing for so long.
  static constexpr std::chrono::seconds kStopped{5};

  explicit PatientWriter(int fd);
  PatientWriter(const PatientWriter&) = delete;
  PatientWriter& operator=(const PatientWriter&) = delete;

  int fd() const { return fd_; }

  /// Puts the text behind what is kept; flush() writes it.
  void keep(std::string_view text);
  /// Writes what can be written now. True where nothing is left.
  bool flush();
  /// Writes the text, or its beginning and keeps the rest. False, and the text is dropped, where
  /// something is kept already or nothing can be written now.
  bool offer(std::string_view text);
  /// Of the first write that failed, as errno; 0 where none did. What comes after is lost too.
  int error() const { return error_; }
  /// Waits until all is written; on a terminal no longer than said above, then the rest is lost.
  void finish();

 private:
  std::size_t write_now(std::string_view text);
  int fd_;
  int error_ = 0;
  bool terminal_;
  // The terminal opened again: O_NONBLOCK belongs to this opening alone.
  base::FileDescriptor own_;
  std::string kept_;
  std::size_t left_out_ = 0;  // lines
};

}  // namespace petlab::cli
