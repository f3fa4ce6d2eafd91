#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "protocol/remarks.h"

namespace petlab::cli {

/// `2026-11-23 03:10:00 UTC  TEXT`, a line each, a tag with + or - before it.
void print_remarks(std::ostream& out, const std::vector<protocol::Remark>& remarks,
                   const std::string& indent);

}  // namespace petlab::cli
