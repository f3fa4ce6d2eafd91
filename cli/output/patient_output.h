#pragma once

#include <iosfwd>
#include <optional>
#include <streambuf>

#include "cli/output/patient_writer.h"

namespace petlab::cli {

/// As long as it lives, what is written to a stream of this process never waits for its reader.
/// What cannot be written now is written with what comes later; the destructor waits for the rest,
/// as PatientWriter::finish() does. Where something was lost, the stream is bad from then on, and
/// a base::StandardOutput below it knows. A stream other than std::cout and std::cerr is left as
/// it is.
class PatientOutput : public std::streambuf {
 public:
  explicit PatientOutput(std::ostream& stream);
  ~PatientOutput() override;
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  /// What the stream writes with; nullptr where it was left as it is.
  PatientWriter* writer() { return writer_ ? &*writer_ : nullptr; }

 protected:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  std::ostream& stream_;
  std::streambuf* former_ = nullptr;
  std::optional<PatientWriter> writer_;
};

}  // namespace petlab::cli
