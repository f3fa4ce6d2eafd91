#include "results/left_out.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "results/connection.h"
#include "results/question_sql.h"
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

void internal::fill_left_out(Connection& connection) {
  std::vector<std::string> kinds;
  {
    Query rows(connection, "SELECT DISTINCT coalesce(module_kind, '') FROM trials");
    while (rows.step()) kinds.push_back(rows.text(0));
  }
  for (const std::string& kind : kinds) {
    std::vector<Value> values = {kind};
    std::vector<std::string> sets;
    std::vector<std::string> missing;
    for (auto& [column, value] : values_where_left_out(kind)) {
      values.push_back(std::move(value));
      sets.push_back(fmt::format("\"{0}\" = coalesce(\"{0}\", ?{1})", column, values.size()));
      missing.push_back(fmt::format("\"{}\" IS NULL", column));
    }
    Query update(connection,
                 fmt::format("UPDATE trials SET {} WHERE coalesce(module_kind, '') = ?1 AND "
                             "json_extract(config, '$.catalog') IS NULL AND ({})",
                             fmt::join(sets, ", "), fmt::join(missing, " OR ")),
                 0);
    bind_all(update, values);
    update.run();
  }
}

}  // namespace petlab::results
