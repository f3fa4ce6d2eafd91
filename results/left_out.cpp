#include "results/left_out.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/schema.h"
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

std::vector<const internal::FieldColumn*> internal::absent_fields(Connection& connection) {
  if (connection.knows_fields) return {};
  std::set<std::string> there;
  Query columns(connection, "SELECT name FROM pragma_table_info('trials')");
  while (columns.step()) there.insert(columns.text(0));
  std::vector<const FieldColumn*> absent;
  for (const FieldColumn& field : field_columns()) {
    if (!there.contains(field.column)) absent.push_back(&field);
  }
  connection.knows_fields = absent.empty();
  return absent;
}

bool internal::is_filled(Connection& connection) {
  Query row(connection, "SELECT value FROM settings WHERE name = 'fields_filled'");
  return row.step() && row.text(0) == std::to_string(sweeps::fields().size());
}

std::string internal::note_filled() {
  return fmt::format(
      "INSERT INTO settings (name, value) VALUES ('fields_filled', '{}') ON CONFLICT (name) DO "
      "UPDATE SET value = excluded.value",
      sweeps::fields().size());
}

void internal::fill_left_out(Connection& connection) {
  if (is_filled(connection)) return;
  std::vector<std::string> kinds;
  {
    Query rows(connection, "SELECT DISTINCT coalesce(module_kind, '') FROM trials");
    while (rows.step()) kinds.push_back(rows.text(0));
  }
  for (const std::string& kind : kinds) {
    for (const auto& [column, value] : values_where_left_out(kind)) {
      Query update(connection,
                   fmt::format("UPDATE trials SET \"{0}\" = ?1 WHERE \"{0}\" IS NULL AND "
                               "coalesce(module_kind, '') = ?2",
                               column),
                   0);
      bind_all(update, {value, kind});
      update.run();
    }
  }
  connection.exec(note_filled().c_str());
}

}  // namespace petlab::results
