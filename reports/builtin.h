#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/definition.h"
#include "reports/published.h"

namespace petlab::reports {

/// A text file compiled into the program.
struct BuiltinFile {
  std::string_view name;  // without folder
  std::string_view content;
};

/// All embedded files: definitions/*.yaml, published.json, page/*.
std::span<const BuiltinFile> builtin_files();
/// The content of that file. Throws std::logic_error if there is none.
std::string_view builtin_file(std::string_view name);
/// Does the same for other embedded files.
std::string_view file_of(std::span<const BuiltinFile> files, std::string_view name);

/// Names of the shipped definitions, sorted.
std::vector<std::string> builtin_reports();
/// The shipped definition with that name. Throws std::invalid_argument listing the known ones.
Definition builtin_report(const std::string& name);

/// The paper's numbers, parsed once.
const Published& published_numbers();

}  // namespace petlab::reports
