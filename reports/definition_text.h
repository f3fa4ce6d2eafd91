#pragma once

#include <string>

#include "reports/definition.h"

namespace petlab::reports {

/// Converts the definition of a command line to YAML: one table or figure of measured values
/// (results, compare, report curve). parse_definition() reads it back as the same question.
std::string to_yaml(const Definition& definition);

}  // namespace petlab::reports
