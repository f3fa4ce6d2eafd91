#pragma once

#include <atomic>
#include <streambuf>
#include <string>
#include <string_view>

namespace petlab::base {

/// The standard output of a program, to be created first in main(). std::cout writes through it,
/// and lost output is an error of the program. Only one per process.
/// - A write beyond the file size limit fails instead of raising SIGXFSZ.
/// - Closed descriptors among 0 to 2 are opened on /dev/null, so that files opened later do not get
///   their numbers. Output to a closed standard output counts as lost. Children inherit neither.
class StandardOutput : public std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  /// Flushes the output and returns the exit code: `code`, or 1 instead of 0 if output was lost. A
  /// loss is also reported on standard error, with the program's name.
  int end(std::string_view program, int code);

  /// Reports an errno from code that writes to the descriptor directly.
  void lost(int error);

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool write_out();
  std::string kept_;
  bool terminal_ = false;
  std::atomic<int> error_ = 0;  // of the first failed write
  std::streambuf* former_ = nullptr;
};

}  // namespace petlab::base
