#pragma once

#include <string>

#include "reports/definition.h"

namespace petlab::reports {

/// The YAML of a definition that a command line made: one table or figure of measured values
/// (results, compare, report curve). parse_definition() reads it as the same question.
std::string to_yaml(const Definition& definition);

}  // namespace petlab::reports
