#include "trainer/compute/error_text.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <new>

namespace petlab::trainer {

std::string message_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "not enough memory";
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&error);
  if (of_libtorch == nullptr) return error.what();
  const std::string text = of_libtorch->what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

void throw_on_failed_allocation() {
  // libsentencepiece has a larger object of the same name as LibTorch's FLAGS_minloglevel, which
  // the dynamic linker places in LibTorch's memory. Its constructor overwrites the next variable,
  // this one.
  FLAGS_caffe2_use_fatal_for_enforce = false;
}

}  // namespace petlab::trainer
