#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/query.h"

namespace petlab::results {

/// Columns of trials, and of the views, of fields that came after the first trials and that a
/// configuration therefore leaves out at their default, each with that default: those that mean
/// something for a module of that kind. Fields that only a T5 has are not among them: which
/// backbone it is, a configuration alone does not know.
std::vector<std::pair<std::string, Value>> values_where_left_out(const std::string& module_kind);

namespace internal {

class Connection;

/// Gives those values to trials whose columns were added after they were recorded.
void fill_left_out(Connection& connection);

}  // namespace internal
}  // namespace petlab::results
