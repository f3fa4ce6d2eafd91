#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"

namespace petlab::reports {

/// Escapes text for use as element content or attribute value.
std::string escaped_html(std::string_view text);
/// Escapes JSON for use inside a script element.
std::string json_in_html(std::string json);
/// One `<li>` per line.
std::string list_items(const std::vector<std::string>& lines);

/// The id of a section's element on its report's page, and the prefix of its cells' ids. Stable as
/// long as the definition is.
std::string section_id(const std::string& report, const Section& section);
/// The id of a cell's element: SECTION/ROW/COLUMN by their keys, with spaces, % and / as %XX.
std::string cell_id(std::string_view section, std::string_view row, std::string_view column);

/// The progress of each sweep: a bar and its text.
std::string html_progress(const std::vector<SweepProgress>& progress);
/// The table element alone. Each cell contains its id, its trials and a template with its details,
/// so that a newer cell can replace it. `label` names a table without heading.
std::string html_table(const Table& table, const std::string& section, const std::string& label);

}  // namespace petlab::reports
