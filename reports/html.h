#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/table.h"

namespace petlab::reports {

/// The text as content of an element or value of an attribute: nothing of it is markup.
std::string escaped_html(std::string_view text);
/// JSON inside a script element: nothing of it ends that.
std::string json_in_html(std::string json);
/// `<li>` of each line.
std::string list_items(const std::vector<std::string>& lines);
/// The table element alone, with the details of its cells as templates in them.
std::string html_table(const Table& table);

}  // namespace petlab::reports
