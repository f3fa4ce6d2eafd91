#include "base/invariant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file_descriptor.h"

namespace petlab::base {

void end_for_broken_invariant(const std::string& what, const char* file, int line) {
  write_all(STDERR_FILENO,
            fmt::format("petlab: a fault in petlab itself ({}:{}): {}; it ended before it could "
                        "write something wrong: report this line, and run the same command to "
                        "resume\n",
                        file, line, what));
  std::_Exit(kBrokenInvariant);
}

}  // namespace petlab::base
