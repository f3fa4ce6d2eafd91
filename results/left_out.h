#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/query.h"

namespace petlab::results {

/// The defaults of fields that are newer than the first trials, by column of trials and views. A
/// configuration omits such fields at their default. Includes only fields that apply to this module
/// kind, and none that apply only to T5, because a configuration does not show the backbone's type.
std::vector<std::pair<std::string, Value>> values_where_left_out(const std::string& module_kind);

namespace internal {

class Connection;

/// Sets these defaults in columns that were added after the trials were recorded.
void fill_left_out(Connection& connection);

}  // namespace internal
}  // namespace petlab::results
