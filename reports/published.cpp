#include "reports/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;

PublishedTable table_from(const std::string& name, const Json& json) {
  PublishedTable table;
  table.title = json.at("title").get<std::string>();
  table.columns = json.at("columns").get<std::vector<std::string>>();
  for (const auto& [row, values] : json.at("rows").items()) {
    table.rows.push_back(row);
    if (values.size() != table.columns.size()) {
      throw std::runtime_error(
          fmt::format("published numbers, {}: row '{}' has {} values, must "
                      "have {}, one a column",
                      name, row, values.size(), table.columns.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Json& value = values[i];
      if (value.is_null()) continue;  // empty in the paper
      PublishedValue published;
      if (value.is_string()) {
        published.value = value.get<std::string>();
      } else {
        published.value = value.get<double>();
      }
      table.values.emplace(std::pair(row, table.columns[i]), std::move(published));
    }
  }
  return table;
}

}  // namespace

Published::Published(std::string_view json) try {
  const Json root = Json::parse(json);
  if (root.at("v") != 1) {
    throw std::runtime_error("published numbers: version is " + root.at("v").dump() +
                             ", must be 1");
  }
  source_ = root.at("source").get<std::string>();
  for (const auto& [name, table] : root.at("tables").items()) {
    names_.push_back(name);
    tables_.emplace(name, table_from(name, table));
  }
  for (const Json& erratum : root.at("errata")) {
    const auto table = tables_.find(erratum.at("table").get<std::string>());
    for (const Json& row : erratum.at("rows")) {
      for (const Json& column : erratum.at("columns")) {
        const auto key = std::pair(row.get<std::string>(), column.get<std::string>());
        if (table == tables_.end() || !table->second.values.contains(key)) {
          throw std::runtime_error("published numbers: an erratum is about " + erratum.dump() +
                                   ", where nothing is printed");
        }
        table->second.values.at(key).erratum = erratum.at("says").get<std::string>();
      }
    }
  }
} catch (const nlohmann::json::exception& error) {
  throw std::runtime_error(std::string("published numbers: ") + error.what());
}

const PublishedTable* Published::table(const std::string& name) const {
  const auto found = tables_.find(name);
  return found == tables_.end() ? nullptr : &found->second;
}

const PublishedValue* Published::find(const std::string& table, const std::string& row,
                                      const std::string& column) const {
  const PublishedTable* known = this->table(table);
  if (known == nullptr) return nullptr;
  const auto found = known->values.find({row, column});
  return found == known->values.end() ? nullptr : &found->second;
}

}  // namespace petlab::reports
