#include "reports/builtin.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "reports/words.h"

namespace petlab::reports {
namespace {

constexpr std::string_view kDefinition = ".yaml";

}  // namespace

std::string_view file_of(std::span<const BuiltinFile> files, std::string_view name) {
  for (const BuiltinFile& file : files) {
    if (file.name == name) return file.content;
  }
  throw std::logic_error("no builtin file " + std::string(name));
}

std::string_view builtin_file(std::string_view name) { return file_of(builtin_files(), name); }

std::vector<std::string> builtin_reports() {
  std::vector<std::string> names;
  for (const BuiltinFile& file : builtin_files()) {
    if (file.name.ends_with(kDefinition)) {
      names.emplace_back(file.name.substr(0, file.name.size() - kDefinition.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Definition builtin_report(const std::string& name) {
  const std::vector<std::string> known = builtin_reports();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw std::invalid_argument(
        fmt::format("there is no report '{}'{} (known: {}; or the path of "
                    "a definition, with a slash or ending in .yaml)",
                    name, did_you_mean(name, known), joined(known)));
  }
  const std::string file = name + std::string(kDefinition);
  return parse_definition(std::string(builtin_file(file)), file);
}

const Published& published_numbers() {
  static const Published numbers(builtin_file("published.json"));
  return numbers;
}

}  // namespace petlab::reports
