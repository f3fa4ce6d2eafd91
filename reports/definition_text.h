#pragma once

#include <string>

#include "reports/definition.h"

namespace petlab::reports {

/// Converts the definition of a command line to YAML: a table or figure of measured values, or
/// ranks (results, compare, report curve). parse_definition() reads it back as the same question.
std::string to_yaml(const Definition& definition);

}  // namespace petlab::reports
