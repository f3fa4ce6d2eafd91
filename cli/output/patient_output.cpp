#include "cli/output/patient_output.h"

#include <unistd.h>

#include <iostream>

#include "base/standard_output.h"

namespace petlab::cli {

PatientOutput::PatientOutput(std::ostream& stream) : stream_(stream) {
  if (&stream == &std::cout) writer_.emplace(STDOUT_FILENO);
  if (&stream == &std::cerr) writer_.emplace(STDERR_FILENO);
  if (!writer_) return;
  stream.flush();
  former_ = stream.rdbuf(this);
}

PatientOutput::~PatientOutput() {
  if (!writer_) return;
  writer_->finish();
  stream_.rdbuf(former_);
  if (writer_->error() == 0) return;
  stream_.setstate(std::ios::badbit);
  if (auto* const output = dynamic_cast<base::StandardOutput*>(former_)) {
    output->lost(writer_->error());
  }
}

int PatientOutput::overflow(int character) {
  if (character == traits_type::eof()) return traits_type::not_eof(character);
  const char one = static_cast<char>(character);
  writer_->keep({&one, 1});
  return character;
}

std::streamsize PatientOutput::xsputn(const char* text, std::streamsize size) {
  writer_->keep({text, static_cast<std::size_t>(size)});
  return size;
}

int PatientOutput::sync() {
  writer_->flush();
  return 0;
}

}  // namespace petlab::cli
