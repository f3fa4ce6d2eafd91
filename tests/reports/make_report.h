#pragma once

#include <string>
#include <vector>

#include "reports/report.h"

namespace petlab::testing {

/// The table of a report with a single table.
inline reports::Table& only_table(reports::Report& report) {
  return std::get<reports::Table>(report.sections.at(0));
}
inline const reports::Table& only_table(const reports::Report& report) {
  return std::get<reports::Table>(report.sections.at(0));
}

/// The table of a report with a single table, with the report's progress and notes.
struct MadeTable : reports::Table {
  std::vector<reports::SweepProgress> progress;
  std::vector<std::string> notes;
};

inline MadeTable table_of(const reports::Definition& definition, const reports::Dataset& data,
                          const reports::Published& published) {
  const reports::Report report = reports::make_report(definition, data, published);
  return {only_table(report), report.progress, report.notes};
}

}  // namespace petlab::testing
