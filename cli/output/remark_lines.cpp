#include "cli/output/remark_lines.h"

#include <ostream>

#include "cli/output/moment_text.h"
#include "reports/text.h"

namespace petlab::cli {

void print_remarks(std::ostream& out, const std::vector<protocol::Remark>& remarks,
                   const std::string& indent) {
  for (const protocol::Remark& one : remarks) {
    const char* const sign = one.what == protocol::Remark::What::tag     ? "+"
                             : one.what == protocol::Remark::What::untag ? "-"
                                                                         : "";
    out << indent << moment_text(one.time) << "  " << sign << reports::printable(one.text) << "\n";
  }
}

}  // namespace petlab::cli
