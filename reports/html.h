#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"
#include "reports/table.h"

namespace petlab::reports {

/// The text as content of an element or value of an attribute: nothing of it is markup.
std::string escaped_html(std::string_view text);
/// JSON inside a script element: nothing of it ends that.
std::string json_in_html(std::string json);
/// `<li>` of each line.
std::string list_items(const std::vector<std::string>& lines);

/// Where a section stands on its report's page, the same as long as the definition is: the id of
/// its element and the beginning of those of its cells.
std::string section_id(const std::string& report, const Section& section);
/// The id of a cell's element: SECTION/ROW/COLUMN by their keys, spaces, % and / within them as
/// %XX.
std::string cell_id(std::string_view section, std::string_view row, std::string_view column);

/// How far each sweep is: a bar and its text.
std::string html_progress(const std::vector<SweepProgress>& progress);
/// The table element alone. Each cell has its id, its trials, and its details as a template in it,
/// so that a newer one can take its place. `label`: what it is called where it has no heading.
std::string html_table(const Table& table, const std::string& section, const std::string& label);

}  // namespace petlab::reports
