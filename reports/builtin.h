#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/definition.h"
#include "reports/published.h"

namespace petlab::reports {

/// A text file that is compiled into the program.
struct BuiltinFile {
  std::string_view name;  // without folders
  std::string_view content;
};

/// definitions/*.yaml, published.json, page/*.
std::span<const BuiltinFile> builtin_files();
/// The content of the file of that name; throws std::logic_error where there is none.
std::string_view builtin_file(std::string_view name);

/// Names of the shipped definitions, sorted.
std::vector<std::string> builtin_reports();
/// The shipped definition of that name. Throws std::invalid_argument listing the known ones.
Definition builtin_report(const std::string& name);

/// The paper's numbers, parsed once.
const Published& published_numbers();

}  // namespace petlab::reports
