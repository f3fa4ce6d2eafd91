#include "results/left_out.h"

#include <nlohmann/json.hpp>

#include "sweeps/fields.h"

namespace petlab::results {

std::vector<std::pair<std::string, Value>> values_where_left_out(const std::string& module_kind) {
  std::vector<std::pair<std::string, Value>> found;
  for (const sweeps::Field& field : sweeps::fields()) {
    const auto value = sweeps::value_where_left_out(field, module_kind);
    if (!value) continue;
    if (value->is_string()) {
      found.emplace_back(field.column, value->get<std::string>());
    } else if (value->is_number_float() || field.type == sweeps::FieldType::number) {
      found.emplace_back(field.column, value->get<double>());
    } else {
      found.emplace_back(field.column, value->is_boolean() ? std::int64_t{value->get<bool>()}
                                                           : value->get<std::int64_t>());
    }
  }
  return found;
}

}  // namespace petlab::results
