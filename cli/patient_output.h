#pragma once

#include <cstddef>
#include <iosfwd>
#include <streambuf>
#include <string>

namespace petlab::cli {

/// As long as it lives, what is written to a stream of this process never waits for its reader: a
/// pipe that nobody reads, a terminal that was stopped (Ctrl-S). What cannot be written now is kept
/// and written with what comes later; the destructor waits for the rest. A stream other than
/// std::cout and std::cerr is left as it is.
class PatientOutput : public std::streambuf {
 public:
  /// More is not kept: lines are left out then, and their number is told.
  static constexpr std::size_t kMostKept = std::size_t{16} << 20;

  explicit PatientOutput(std::ostream& stream);
  ~PatientOutput() override;
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

 protected:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  void keep(const char* text, std::size_t size);
  void write_kept(bool wait);
  std::ostream& stream_;
  std::streambuf* former_ = nullptr;
  int fd_ = -1;
  std::string kept_;
  std::size_t left_out_ = 0;  // lines
};

}  // namespace petlab::cli
