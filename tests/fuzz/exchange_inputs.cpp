#include "tests/fuzz/exchange_inputs.h"

#include <stdexcept>
#include <string>

#include "exchange/archive_format.h"
#include "orchestrator/host/error.h"

namespace petlab::fuzz {

void archive_list(std::string_view input) {
  try {
    const exchange::ArchiveList list = exchange::parse_archive_list(std::string(input), "a.tar.gz");
    for (const auto& [name, digest] : list.files) {
      if (!exchange::why_no_archive_name(name).empty()) {
        throw std::logic_error("a listed name is not one of a runs folder: " + name);
      }
    }
    const std::string written = exchange::archive_list_text(list);
    if (exchange::archive_list_text(exchange::parse_archive_list(written, "a.tar.gz")) != written) {
      throw std::logic_error("a list does not read back: " + written);
    }
  } catch (const orchestrator::Error&) {
  }
}

}  // namespace petlab::fuzz
