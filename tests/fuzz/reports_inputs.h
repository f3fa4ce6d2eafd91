#pragma once

#include <string_view>

namespace petlab::fuzz {

/// Every report definition is refused with problems that name file and line, or has sections.
/// Throws std::logic_error if that does not hold.
void report_definition(std::string_view input);

}  // namespace petlab::fuzz
