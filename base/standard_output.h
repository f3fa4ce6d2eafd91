#pragma once

#include <atomic>
#include <streambuf>
#include <string>
#include <string_view>

namespace petlab::base {

/// The standard output of a program, made first in its main(): as long as it lives, std::cout
/// writes through it, and what could not be written is an error of the program. One a process.
/// - A write beyond the file size limit fails, where SIGXFSZ would end the program.
/// - Of the descriptors 0 to 2, those that are closed lead to /dev/null, so that no file that the
///   program opens later is taken for one of them; what is written to a closed standard output is
///   lost output. Children inherit neither.
class StandardOutput : public std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  /// Writes what is left. The exit code: `code`, or 1 in place of 0 where anything was lost; that
  /// is said on standard error then, as the named program.
  int end(std::string_view program, int code);

  /// For what writes to the descriptor itself: that it lost something, by errno.
  void lost(int error);

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool write_out();
  std::string kept_;
  bool terminal_ = false;
  std::atomic<int> error_ = 0;  // of the first write that failed
  std::streambuf* former_ = nullptr;
};

}  // namespace petlab::base
